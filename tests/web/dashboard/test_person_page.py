"""One person."""

import pytest
from playwright.async_api import expect

from keystead.app import App
from keystead.ids import UserSub
from keystead.members import Contact, Device, Member
from keystead.settings import load_settings
from keystead.web.dashboard.messages_person import PersonLook, address_rows
from keystead.web.dashboard.person_page import PersonFacts, about, name_of, profile_html, why_html

NOW = 1_700_000_000.0
HOSTILE = "<script>alert('x')</script>"


def member(**facts):
    return Member(**{"sub": UserSub("user_1"), "given_name": "Ada", "family_name": HOSTILE, "admin": False,
                     "timezone": "Asia/Tokyo", "created_at": NOW - 86_400, **facts})


def messages(**facts):
    return PersonLook(**{"touches": [], "emails": [], "phones": [], "devices": [], "reminders": [], **facts})


def test_profile_tells_zone_clock_and_activity():
    found = PersonFacts(member(), messages(emails=[Contact("a@b.example", True, True, False, NOW)]), None, True, True)
    shown = profile_html("user_1", found, NOW)
    assert "Asia/Tokyo" in shown and "Wed 07:13 there now" in shown and "active today" in shown
    assert "1 email address" in shown and HOSTILE not in shown and "a@b.example" not in shown
    assert about("user_1", member(), NOW) == "user_1 · Wed 07:13 where they are"
    assert name_of(member(family_name="")) == "Ada" and name_of(None) == ""


def test_somebody_who_is_gone_is_told_so():
    found = PersonFacts(None, messages(), None, False, False)
    assert "not there" in profile_html("user_1", found, NOW) and "no such person" in about("user_1", None, NOW)
    assert "none comes" in why_html(None)


def test_addresses_are_masked_until_asked_for():
    found = messages(emails=[Contact("ada@example.com", True, True, False, NOW)],
                     phones=[Contact("+14155550123", True, True, False, NOW)],
                     devices=[Device("ExponentPushToken[abc]", "ios", True, NOW, NOW)])
    hidden = "".join(cell for row in address_rows(found) for cell in row.cells)
    assert "ad•••@example.com" in hidden and "+14•••23" in hidden and "Token" not in hidden
    assert "ada@example.com" in "".join(cell for row in address_rows(found, revealed=True) for cell in row.cells)


@pytest.mark.browser
async def test_everything_about_a_person_is_on_one_page(tab, site):
    async with App(load_settings({"valkey.url": site.valkey_url}, environment={})).running() as running:
        board = running.switchboard
        ada = await running.users.ensure("test", "ada of the page", given_name="Ada", timezone="Asia/Tokyo")
        await board.contacts.add_email(ada.sub, "ada@page.example", verified=True)
        await running.activity.seen(ada.sub)
    await tab.goto(f"/people/{ada.sub}")
    await expect(tab.locator("h1")).to_have_text("Ada")
    await expect(tab.get_by_label("Profile")).to_contain_text("active today")
    await expect(tab.get_by_label("Profile")).to_contain_text("Asia/Tokyo")
    await expect(tab.get_by_label("Reminder", exact=True)).to_contain_text("joined")
    addresses = tab.get_by_label("Addresses", exact=True)
    await expect(addresses).to_contain_text("ad•••@page.example")
    await tab.get_by_role("button", name="Reveal addresses").click()
    await expect(addresses).to_contain_text("ada@page.example")
    await expect(tab.get_by_label("Personal data")).to_contain_text("Keys with their personal data")
    await tab.goto("/people/user_nobody")
    await expect(tab.get_by_role("main")).to_contain_text("There is no such person now")
