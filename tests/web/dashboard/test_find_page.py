"""What a search found."""

import httpx
import pytest
from playwright.async_api import expect

from keystead.app import App
from keystead.edge.keys import API_IP
from keystead.settings import load_settings
from keystead.web.callers import TOKEN_PURPOSE
from keystead.web.dashboard.find_page import MOST_HINTS, PLURALS, found_html, hints, meant, pages_named
from keystead.web.searching import SCOPES, Hit

HOSTILE = "<script>alert('x')</script>"
SURE = Hit("person", "Ad•••", "user_1", "/people/user_1", True)


def pattern(number):
    return Hit("pattern", f"p{number}:{{x}}", "what it is for", f"/pattern?name=p{number}")


def test_one_sure_hit_is_what_was_meant():
    assert meant([SURE, pattern(1)]) == "/people/user_1"
    assert meant([pattern(1)]) == "/pattern?name=p1"
    assert meant([pattern(1), pattern(2)]) is None and meant([SURE, SURE]) is None and meant([]) is None


def test_every_kind_has_a_heading():
    assert set(SCOPES) <= set(PLURALS)


def test_hints_are_few_and_of_several_kinds():
    found = hints("me", [*(pattern(number) for number in range(9)), Hit("setting", "http.port", "port", "/settings#x")])
    assert len(found) == MOST_HINTS and found[0]["kind"] == "page" and found[0]["address"] == "/messages"
    assert {"pattern", "setting"} <= {hint["kind"] for hint in found}
    assert hints("zzz", [SURE])[0]["kind"] == "person"


def test_pages_are_found_by_the_beginning_of_their_name():
    assert pages_named("jo") == [("Jobs", "/jobs")] and pages_named("") == [] and pages_named("obs") == []


def test_what_was_found_is_only_text():
    shown = found_html("x", [Hit("key", HOSTILE, HOSTILE, f"/key?key={HOSTILE}")])
    assert HOSTILE not in shown
    assert "The search understands" in found_html("", [])


@pytest.mark.browser
async def test_search_leads_straight_to_the_one_thing_that_was_meant(tab, site, store):
    await API_IP.at("203.0.113.77").set(store, 1)
    async with App(load_settings({"valkey.url": site.valkey_url}, environment={})).running() as running:
        ada = await running.users.ensure("test", "ada of search", given_name="Adelheid", family_name=HOSTILE)
        await running.users.ensure("test", "two of search", given_name="Adelaide")
        await running.switchboard.contacts.add_phone(ada.sub, "+14155550142")
    await tab.goto("/find")
    await expect(tab.get_by_label("What can be searched for")).to_contain_text("phone number")
    box = tab.get_by_role("combobox", name="Search")
    for text, title in (("api_ip:203.0.113.77", "api_ip:20•••"), ("tch_nothing", "tch_nothing"),
                        ("+1 415 555 0142", f"Adelheid {HOSTILE}"), ("api_ip:{ip}", "api_ip:{ip}")):
        await box.fill(text)
        await box.press("Enter")
        await expect(tab.locator("h1")).to_have_text(title)
    await box.fill("adel")
    await box.press("Enter")
    await expect(tab.locator("h1")).to_have_text("Several things match")
    people = tab.get_by_role("region", name="People")
    await expect(people.get_by_role("link")).to_have_count(2)
    await expect(people).to_contain_text("Ad•••")
    await box.fill("zzz nothing")
    await box.press("Enter")
    await expect(tab.locator("h1")).to_have_text("Nothing is found")


@pytest.mark.browser
async def test_suggestions_come_while_typing_and_are_chosen_by_keyboard(tab):
    await tab.goto("/keys")
    await tab.wait_for_selector("h1")
    await tab.keyboard.press("/")
    box = tab.get_by_role("combobox", name="Search")
    await expect(box).to_be_focused()
    await box.press_sequentially("login_ip")
    options = tab.get_by_role("option")
    await expect(options.first).to_contain_text("login_ip:{ip}")
    await expect(box).to_have_attribute("aria-expanded", "true")
    await box.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await box.press("Enter")
    await expect(tab.locator("h1")).to_have_text("login_ip:{ip}")
    await box.press_sequentially("api_ip")
    await expect(options.first).to_be_visible()
    await box.press("Escape")
    await expect(options.first).to_be_hidden()


async def test_hints_are_for_those_who_may(site):
    tickets = site.app.tickets()

    def token(*scopes):
        return {"Authorization": f"Bearer {tickets.issue(TOKEN_PURPOSE, 'someone', lasts_seconds=60, scopes=scopes)}"}

    async with httpx.AsyncClient(timeout=60, base_url=site.url, follow_redirects=False) as client:
        assert (await client.get("/find/hints?q=api_ip")).status_code == 401
        assert (await client.get("/find/hints?q=api_ip", headers=token("stats"))).json() == []
        found = (await client.get("/find/hints?q=api_ip", headers=token("keys"))).json()
        assert found[0]["title"] == "api_ip:{ip}" and set(found[0]) == {"kind", "title", "says", "address"}
