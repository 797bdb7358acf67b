"""Everybody, in a list."""

import pytest
from playwright.async_api import expect

from keystead.app import App
from keystead.ids import UserSub
from keystead.members.searching import Listed
from keystead.settings import load_settings
from keystead.web.dashboard.people_page import PAGE_PEOPLE, PeoplePage, heading, local_time, people_html, person_address

NOW = 1_700_000_000.0
HOSTILE = "<script>alert('x')</script>"


def person(**facts):
    return Listed(**{"number": 1, "sub": UserSub("user_1"), "given_name": "Ada", "family_name": "Lovelace",
                     "timezone": "Asia/Tokyo", "created_at": NOW - 90, **facts})


def test_names_are_masked_until_asked_for():
    page = PeoplePage([person()], 1)
    assert "Ad••• Lo•••" in people_html(page, "", NOW, revealed=False)
    assert "Ada Lovelace" in people_html(page, "", NOW, revealed=True)
    hostile = people_html(PeoplePage([person(given_name=HOSTILE, sub=UserSub(HOSTILE))], 1), "", NOW, revealed=True)
    assert HOSTILE not in hostile


def test_their_clock_is_told():
    assert local_time("Asia/Tokyo", NOW) == "Wed 07:13" and local_time("UTC", NOW) == "Tue 22:13"
    assert "1 min 30 s ago" in people_html(PeoplePage([person()], 1), "", NOW, revealed=False)


def test_nobody_is_explained():
    assert "--demo" in people_html(PeoplePage([], 0), "", NOW, revealed=False)
    assert "Nobody is found" in people_html(PeoplePage([], None), "x", NOW, revealed=False)
    assert heading(PeoplePage([], 1234), "").startswith("1,234 in all")
    assert heading(PeoplePage([], None), "x") == "0 found."
    assert person_address("a/b c") == "/people/a%2Fb%20c"


@pytest.mark.browser
async def test_people_are_paged_found_and_opened(tab, site):
    async with App(load_settings({"valkey.url": site.valkey_url}, environment={})).running() as running:
        for number in range(PAGE_PEOPLE + 2):
            await running.users.ensure("test", f"listed {number}", given_name=f"Listed{number}", family_name="Person")
    await tab.goto("/people")
    rows = tab.locator("tbody tr")
    await expect(rows).to_have_count(PAGE_PEOPLE)
    await expect(rows.first).to_contain_text("Li••• Pe•••")
    await tab.get_by_role("button", name="Reveal names").click()
    await expect(rows.first).to_contain_text(f"Listed{PAGE_PEOPLE + 1} Person")
    await tab.get_by_role("link", name="Those who joined before").click()
    await tab.wait_for_url("**before=*")
    await expect(rows.first).to_contain_text("Li•••")
    await tab.get_by_label("Find a person").fill("listed7 per")
    await tab.get_by_role("button", name="Find").click()
    await expect(rows).to_have_count(1)
    await rows.first.get_by_role("link").click()
    await expect(tab.locator("h1")).to_have_text("Listed7 Person")
