"""Changes of the keyspace in words."""

import pytest
from playwright.async_api import expect

from keystead.web.dashboard.changes_page import change_row, signed, standing, stray_row, verdict_html
from keystead.web.keyspace_changes import KeyspaceChanges, PatternChange

NOW = 1_800_000_000.0
GREW = PatternChange("cart:{user}", (10, 1000), (15, 1400), (10, 12, 15))
NEW = PatternChange("new:{id}", (0, 0), (3, 90), (0, 3))
GONE = PatternChange("old:{id}", (3, 90), (0, 0), (3, 0))


def changes(*patterns: PatternChange, undeclared: int = 0, seconds: float = 600.0) -> KeyspaceChanges:
    return KeyspaceChanges(NOW - seconds, NOW, (13, 18), (1000, 1400), ((2, 10), (2 + undeclared, 30)), patterns, {})


def test_the_hour_in_a_sentence_and_since_when_it_is_known():
    text = verdict_html(changes(GREW, NEW, GONE, undeclared=4), NOW)
    assert "10 min" in text and "18 keys" in text and "(+5)" in text and "1 pattern got its first keys" in text
    assert "1 pattern has none any more" in text and "+4 keys that nobody declares" in text
    assert "less than an hour" in text
    assert "less than an hour" not in verdict_html(changes(GREW, seconds=3600.0), NOW)


def test_rows_tell_what_became_of_a_pattern():
    row = change_row(GREW)
    assert "+5" in row.cells[2] and "15" in row.cells[2] and "+400 B" in row.cells[3] and "svg" in row.cells[1]
    assert ">new<" in change_row(NEW).cells[0] and ">gone<" in change_row(GONE).cells[0]
    assert "\N{MINUS SIGN}3" in change_row(GONE).cells[2] and "\N{EN DASH}" in change_row(GONE).cells[3]
    assert "&lt;x&gt;" in stray_row("<x>", 0, 5).cells[0] and "+5" in stray_row("<x>", 0, 5).cells[2]
    assert signed(0) == "the same" and signed(-1500) == "\N{MINUS SIGN}1,500"


def test_undeclared_keys_are_what_to_know_first():
    assert standing(changes(GREW, undeclared=1)) == ("Undeclared keys came", "warn")
    assert standing(changes(GREW)) == ("1 pattern changed", "")
    same = PatternChange("a", (1, 5), (1, 5), (1, 1))
    assert standing(changes(same)) == ("Nothing changed", "idle")


@pytest.mark.browser
async def test_what_came_since_the_first_look_shows_when_it_is_counted_again(tab, store):
    await tab.goto("/changes")
    await expect(tab.locator("[data-verdict]")).to_contain_text("Looked at once a minute")
    await store.mset({f"stray:thing:{number}": "x" for number in range(40)})
    await tab.get_by_role("button", name="Count again").click()
    await expect(tab.get_by_role("region", name="Not declared")).to_contain_text("stray:thing:{thing_id}")
