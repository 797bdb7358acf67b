"""What every page has, in a real browser."""

import pytest
from playwright.async_api import expect

from keystead.clock import Pace, SystemClock
from keystead.edge.keys import API_IP
from keystead.web.dashboard.frame import demonstration_html
from keystead.web.dashboard.menu import DESTINATIONS

pytestmark = pytest.mark.browser


def test_a_demonstration_says_how_fast_its_clock_runs():
    assert demonstration_html(SystemClock()) == ""
    text = demonstration_html(SystemClock(pace=Pace(144.0, 1_800_000_000.0, 1_800_003_600.0)))
    assert "A real minute is 2 h 24 min of the town" in text and " UTC</time>" in text


@pytest.mark.parametrize("path", ["/", "/keys", "/people", "/find?q=x", "/settings", "/pattern?name=x", "/key?key=x",
                                  "/docs"])
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


EVERYWHERE = (*(one.path for one in DESTINATIONS if one.path != "/docs"), "/find", "/find?q=reminder", "/people/user_x",
              "/pattern?name=api_ip:{ip}", "/jobs/x", "/messages/trace?uid=tch_x", "/stats/job-runs", "/stats/sms_send")


async def test_no_page_scrolls_sideways_on_a_phone_and_every_one_has_its_marks(tab):
    """One way through all pages, for each takes a second or two to open."""
    await tab.set_viewport_size({"width": 390, "height": 844})
    for path in EVERYWHERE:
        await tab.goto(path)
        await tab.wait_for_selector("h1")
        assert await tab.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert await tab.get_by_role("main").count() == 1 and await tab.locator("h1").count() == 1, path
        assert await tab.get_by_role("search").count() >= 1 and await tab.get_by_role("banner").count() == 1, path


async def test_a_phone_has_a_menu_behind_a_button(tab):
    await tab.set_viewport_size({"width": 390, "height": 844})
    await tab.goto("/keys")
    menu, opener = tab.get_by_role("navigation", name="Pages"), tab.get_by_role("button", name="Menu")
    await expect(menu).to_be_hidden()
    await opener.click()
    await expect(opener).to_have_attribute("aria-expanded", "true")
    await expect(menu.get_by_role("link", name="Keys")).to_be_focused()
    await tab.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(opener).to_be_focused()
    await opener.click()
    await menu.get_by_role("link", name="People").click()
    await expect(tab.locator("h1")).to_have_text("People")


async def test_the_keyboard_leads_everywhere(tab):
    await tab.goto("/keys")
    await expect(tab.locator("h1")).to_have_text("Keys")
    await tab.keyboard.press("Tab")
    skip = tab.get_by_role("link", name="Skip to the page")
    await expect(skip).to_be_focused()
    await skip.press("Enter")
    assert await tab.evaluate("document.activeElement.id") == "content"
    await tab.keyboard.press("?")
    shortcuts = tab.get_by_role("dialog", name="Keys of the keyboard")
    await expect(shortcuts).to_contain_text("Statistics")
    await tab.keyboard.press("Escape")
    await expect(shortcuts).to_be_hidden()
    await tab.keyboard.press("/")
    await expect(tab.get_by_role("combobox", name="Search")).to_be_focused()
    await tab.keyboard.type("gj")
    await expect(tab.get_by_role("combobox", name="Search")).to_have_value("gj")
    await tab.keyboard.press("Escape")
    await tab.keyboard.press("Escape")
    await tab.keyboard.press("g")
    await tab.keyboard.press("p")
    await expect(tab.locator("h1")).to_have_text("People")
    light = await tab.evaluate("document.documentElement.dataset.theme")
    await tab.keyboard.press("t")
    assert await tab.evaluate("document.documentElement.dataset.theme") != light


CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((part) => {
    const share = part / 255;
    return share <= .03928 ? share / 12.92 : ((share + .055) / 1.055) ** 2.4;
  }).reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility({visibilityProperty: true}) || element.closest("svg, script, style")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.4) faint.push(`${element.className} ${element.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_text_can_be_read_in_both_themes(tab, store, theme):
    await API_IP.at("203.0.113.77").set(store, 1)
    await tab.goto("/find")
    await tab.evaluate(f"localStorage.setItem('keystead-theme', '{theme}')")
    for path in ("/", "/keys", "/people", "/jobs", "/find?q=reminder", "/settings", "/key?key=api_ip:203.0.113.77"):
        await tab.goto(path)
        await tab.wait_for_selector("h1")
        await tab.wait_for_selector(".ks-card:visible, .ks-tiles:visible")
        assert await tab.evaluate("document.documentElement.dataset.theme") == theme
        assert await tab.evaluate(CONTRAST) == [], path


async def test_documentation_works_without_the_outside_world(page):
    await page.get_by_role("link", name="API", exact=True).click()
    await page.locator("#operations-tag-keys").get_by_role("button", name="Expand operation").click()
    await expect(page.locator(".opblock-summary-path", has_text="/api/1/keys/explain")).to_be_visible()
