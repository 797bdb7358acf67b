"""What every page has, in a real browser."""

import pytest
from playwright.async_api import expect

from keystead.edge.keys import API_IP

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", ["/", "/pattern?name=x", "/key?key=x", "/docs"])
async def test_page_without_a_session_leads_to_the_log_in(stranger, path):
    await stranger.goto(path)
    await expect(stranger.locator("h1")).to_have_text("Please log in")
    await expect(stranger.locator("code")).to_have_text("keystead login-link")


async def test_used_link_is_refused_to_another_browser(page, site):
    link = site.link()
    await page.goto(link)
    await page.wait_for_selector(".ks-tiles")
    other = await (await page.context.browser.new_context()).new_page()
    await other.goto(link)
    await expect(other.locator("h1")).to_have_text("This link was already used")
    await expect(other.locator("code")).to_have_text("keystead login-link")


async def test_log_in_leads_to_the_page_that_was_wanted(stranger, site):
    await stranger.goto("/key?key=stray")
    await stranger.goto(f"{site.link()}&next=%2Fkey%3Fkey%3Dstray")
    await expect(stranger.locator("h1")).to_have_text("stray")


async def test_logging_out_ends_the_session(page):
    await page.get_by_role("button", name="Log out").click()
    await expect(page.locator("h1")).to_have_text("Please log in")
    await page.goto("/")
    await expect(page.locator("h1")).to_have_text("Please log in")


async def test_light_and_dark_are_kept(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await page.get_by_role("button", name="Light or dark").click()
    dark = await page.evaluate(ground)
    assert dark != light
    await page.reload()
    await page.wait_for_selector(".ks-tiles")
    assert await page.evaluate(ground) == dark


@pytest.mark.parametrize("width", [360, 768, 1280])
async def test_nothing_hangs_over_the_edge(tab, store, width):
    await API_IP.at("203.0.113.77").set(store, 1)
    await tab.set_viewport_size({"width": width, "height": 800})
    for path in ("/", "/pattern?name=api_ip:{ip}", "/key?key=api_ip:203.0.113.77", f"/key?key={'long' * 80}"):
        await tab.goto(path)
        await tab.wait_for_selector("h1")
        assert await tab.evaluate("document.documentElement.scrollWidth") <= width, path


async def test_documentation_works_without_the_outside_world(page):
    await page.get_by_role("link", name="API", exact=True).click()
    await expect(page.locator(".opblock-summary-path", has_text="/api/1/keys/explain")).to_be_visible()
