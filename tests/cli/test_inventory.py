import json

import pytest

from .command import keystead

FIELDS = {"pattern", "kind", "type", "ttl", "room", "purpose", "personal", "tag", "writers", "readers", "scripts"}


def test_list_as_json_has_every_declaration_and_field(shop):
    outcome = keystead("keys", "list", "--registry", "shop.keys", "--format", "json", cwd=shop)
    assert outcome.code == 0
    rows = json.loads(outcome.out)
    assert [row["pattern"] for row in rows] == ["price:{sku}", "pending:{order_id}", "pending", "visits:{unix_date}",
                                                "seen:{user_sub}"]
    assert all(set(row) >= FIELDS for row in rows)
    seen = rows[-1]
    assert (seen["kind"], seen["type"], seen["room"], seen["ttl"]) == ("key", "flag", "club", "1 min")
    assert seen["personal"] == ["variable user_sub"]
    assert seen["writers"] == ["shop.desk"]


def test_keysteads_own_keys_are_listed_by_default():
    rows = json.loads(keystead("keys", "list", "--format", "json").out)
    assert {row["room"] for row in rows} >= {"edge"}


def test_list_can_be_narrowed(shop):
    said = keystead("keys", "list", "--registry", "shop.keys", "--room", "club", "--personal", cwd=shop)
    assert "seen:{user_sub}" in said.out
    assert "visits" not in said.out
    assert "1 declared" in said.err
    assert "shop" in keystead("keys", "list", "--registry", "shop.keys", "--room", "no", cwd=shop).refused()


def test_table_is_plain_text_off_a_terminal(shop):
    out = keystead("keys", "list", "--registry", "shop.keys", cwd=shop).out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


@pytest.mark.parametrize("wanted", ["price:{sku}", "price:tea", "pric"])
def test_show_finds_a_declaration_by_pattern_key_or_part(shop, wanted):
    row = json.loads(keystead("keys", "show", wanted, "--registry", "shop.keys", "--format", "json", cwd=shop).out)
    assert row["pattern"] == "price:{sku}"
    told = keystead("keys", "show", wanted, "--registry", "shop.keys", cwd=shop).out
    assert "what an article costs" in told and "at most 10 min" in told and "shop.desk" in told


def test_show_says_what_was_meant(shop):
    assert "pending:{order_id}" in keystead("keys", "show", "end", "--registry", "shop.keys", cwd=shop).refused()
    assert "price:{sku}" in keystead("keys", "show", "prices:{sku}", "--registry", "shop.keys", cwd=shop).refused()
    assert "keys list" in keystead("keys", "show", "zzzzzz", "--registry", "shop.keys", cwd=shop).refused()


def test_docs_are_written_to_standard_output_or_a_file(shop):
    markdown = keystead("keys", "docs", "--registry", "shop.keys", cwd=shop)
    assert markdown.code == 0
    assert "`price:{sku}`" in markdown.out
    written = keystead("keys", "docs", "--registry", "shop.keys", "--html", "-o", "keys.html", cwd=shop)
    assert (written.code, written.out) == (0, "")
    assert "<!doctype html>" in (shop / "keys.html").read_text("utf-8")
    assert "nowhere" in keystead("keys", "docs", "-o", "nowhere/keys.md", cwd=shop).refused()
