"""What is said to whoever is here for the first time."""

import pytest
from playwright.async_api import expect

from keystead.web.dashboard.menu import DESTINATIONS
from keystead.web.dashboard.welcome import EMPTY_STEPS, TOWN_STEPS, welcome_html

from .conftest import started_site


def test_each_step_leads_to_a_page_of_the_menu():
    known = {one.path for one in DESTINATIONS}
    assert {path for path, _, _ in (*TOWN_STEPS, *EMPTY_STEPS)} <= known
    assert "simulated people" in welcome_html(town=True) and "keystead up --demo" in welcome_html(town=False)


@pytest.mark.browser
async def test_an_empty_installation_says_what_it_is_until_somebody_closes_it(stranger, browser, tmp_path):
    with started_site(tmp_path / "data") as site:  # people of other tests have joined the one that all share
        context = await browser.new_context(base_url=site.url)
        await context.add_cookies([site.session_cookie()])
        await _welcomed(await context.new_page())
        await context.close()


async def _welcomed(tab):
    await tab.goto("/")
    welcome = tab.get_by_role("region", name="Welcome")
    await expect(welcome).to_contain_text("the backend of a product in one program")
    await welcome.get_by_role("button", name="Close").click()
    await expect(welcome).to_be_hidden()
    await tab.reload()
    await tab.wait_for_selector(".ks-tiles")
    await expect(welcome).to_be_hidden()
