"""One key as a page shows it."""

import pytest
from playwright.async_api import expect

from keystead.edge.keys import API_IP, EDGE
from keystead.keys import Keyspace, Registry, StringKey
from keystead.operations import explain
from keystead.web.dashboard.key_page import (
    dated_html,
    facts_html,
    key_address,
    masked_value,
    personal_arguments,
    size_html,
    state_chip,
    value_html,
)

HERE = Keyspace("here")
NOTES = StringKey(HERE, "notes:{user_sub}:{day:integer}", str, purpose="what someone wrote", personal=True)
REGISTRY = Registry([EDGE, HERE])


async def explained(valkey, name):
    return await explain(valkey, REGISTRY, name)


async def test_key_as_declared(valkey):
    await API_IP.at("203.0.113.7").set(valkey, 41)
    found = await explained(valkey, b"api_ip:203.0.113.7")
    assert "as declared" in state_chip(found) and "good" in state_chip(found)
    facts = facts_html(found, frozenset())
    assert "203.0.113.7" in facts and "declared: 1 min" in facts and "/pattern?name=api_ip" in facts
    assert ">41<" in value_html(found, revealed=True)


async def test_personal_data_is_hidden_until_revealed(valkey):
    await API_IP.at("203.0.113.7").set(valkey, 41)
    found = await explained(valkey, b"api_ip:203.0.113.7")
    assert personal_arguments(REGISTRY, found) == {"ip"}
    assert "203.0.113.7" not in facts_html(found, frozenset({"ip"}))
    assert "41" not in value_html(found, revealed=False)


async def test_where_no_variable_is_named_all_are_hidden(valkey):
    found = await explained(valkey, b"notes:user_1:7")
    assert personal_arguments(REGISTRY, found) == {"user_sub", "day"}


async def test_broken_key_lists_what_is_wrong(valkey):
    await valkey.set("api_ip:203.0.113.7", "<x>")
    found = await explained(valkey, b"api_ip:203.0.113.7")
    assert "not as declared" in state_chip(found)
    assert facts_html(found, frozenset()).count("ks-chip bad") == 2
    assert "does not decode" in value_html(found, revealed=True) and "&lt;x&gt;" in value_html(found, revealed=True)


async def test_stray_key_and_absent_key_are_told_apart(valkey):
    await valkey.hset("stray", mapping={"a": "1", "b": "<i>"})
    stray = await explained(valkey, b"stray")
    assert "not declared" in state_chip(stray)
    assert "2 fields" in size_html(stray) and "&lt;i&gt;" in value_html(stray, revealed=True)
    absent = await explained(valkey, b"api_ip:203.0.113.9")
    assert "not on the server" in state_chip(absent)
    assert "no such key" in value_html(absent, revealed=True) and size_html(absent) == ""


@pytest.mark.parametrize(("fill", "says"), [
    (lambda valkey: valkey.set("x", "a"), "1 byte"), (lambda valkey: valkey.rpush("x", "a", "b"), "2 elements"),
    (lambda valkey: valkey.xadd("x", {"a": "b"}), "1 entry"),
])
async def test_size_has_the_right_word(valkey, fill, says):
    await fill(valkey)
    assert f">{says}<" in size_html(await explained(valkey, b"x"))


def test_masked_value_keeps_its_shape():
    assert masked_value({"name": "Ann", "tags": [1, None]}) == {"name": "•••", "tags": ["•••", "•••"]}


def test_address_of_a_key_that_is_no_text():
    assert key_address(b"a b:\xff") == "/key?key=a%20b%3A%5Cxff"


@pytest.mark.browser
async def test_typed_key_is_explained_and_revealed(page, store):
    await API_IP.at("203.0.113.77").set(store, 4711)
    await page.get_by_role("combobox", name="Search").fill("api_ip:203.0.113.77")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("api_ip:20•••")
    await expect(page.locator(".ks-value")).to_have_text("•••")
    await page.get_by_role("button", name="Reveal personal data").click()
    await expect(page.locator(".ks-value")).to_have_text("4711")
    await expect(page.locator("h1")).to_have_text("api_ip:203.0.113.77")
    await expect(page.locator(".ks-facts")).to_contain_text("declared: 1 min")
    await page.get_by_role("button", name="Hide personal data").click()
    await expect(page.locator(".ks-value")).to_have_text("•••")


@pytest.mark.browser
async def test_stray_key_with_hostile_content_is_only_text(tab, store):
    await store.hset("<img src=x onerror=alert(1)>", mapping={"a": "</pre><script>alert(2)</script>"})
    await tab.goto("/key?key=<img src=x onerror=alert(1)>")
    await expect(tab.locator("h1")).to_have_text("<img src=x onerror=alert(1)>")
    await expect(tab.locator(".ks-value")).to_contain_text("</pre><script>alert(2)</script>")
    await expect(tab.locator(".ks-chip.warn").first).to_have_text("not declared")
    assert await tab.locator("main img").count() == 0


@pytest.mark.browser
async def test_empty_question_is_answered_kindly(tab):
    await tab.goto("/key")
    await expect(tab.locator(".ks-empty")).to_contain_text("Type a key")


def test_numbers_that_are_times_are_followed_by_their_dates():
    shown = dated_html('{\n  "score": 1794816816.0,\n  "unix_date": 20773,\n  "count": 20773\n}')
    assert shown.count("ks-when") == 2
    assert ">2026-11-16 08:13:36 UTC<" in shown and ">2026-11-16<" in shown
    assert "ks-when" not in dated_html("1794816816 apples") and "&lt;b&gt;" in dated_html("<b>")
