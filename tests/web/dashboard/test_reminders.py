"""The page on reminders: what is computed for it, and the page in a browser."""

import pytest
from playwright.async_api import expect

from keystead.clock import SystemClock
from keystead.reminders.heat import Wishes, spread
from keystead.reminders.keys import EARLIEST, PROGRESS, QUEUED, ZONES
from keystead.reminders.models import DueReminder, Progress
from keystead.reminders.stats import ASSIGN_RUN, AssignRun
from keystead.web.dashboard.reminders import RemindersLook, ZoneProgress, summary, tile_texts, zone_row
from keystead.web.dashboard.reminders_heat import busiest, heat_html, shade, short

GRID = spread([(32, 1 << 1, 15.0), (36, 1 << 1, -15.0), (36, 1, 1.5), (40, 1, -1.5)])
EMPTY = spread([])


def test_the_busiest_hour_is_the_darkest():
    assert busiest(GRID) == (1, 8) and busiest(EMPTY) is None
    assert (shade(60, 60), shade(6, 60), shade(0, 60), shade(0, 0)) == (5, 0, None, None)
    text = heat_html(GRID, "reminders")
    assert "Monday from 08:00: about 60 reminders" in text and text.count("<td></td>") == 7 * 24 - 2
    assert text.index(">Mon<") < text.index(">Sun<")
    assert heat_html(EMPTY, "reminders").count("<td></td>") == 7 * 24


@pytest.mark.parametrize(("count", "said"), [
    (0.2, "1"), (999, "999"), (1000, "1.0k"), (3456, "3.5k"), (45_600, "46k"), (1_200_000, "1.2M"), (25e6, "25M"),
])
def test_numbers_fit_into_a_cell(count, said):
    assert short(count) == said


def test_the_page_begins_with_what_matters():
    wishes = Wishes(GRID, {"sms": 60, "email": 6}, {"UTC": 66})
    assert "66 reminders in 1 time zone; the busiest hour is 8:00 to 9:00" in summary(wishes)
    assert "whoever wants it" in summary(Wishes(EMPTY, {}, {}))
    texts = tile_texts(RemindersLook(5, 160.0, (), ()), wishes, None, 100.0)
    assert [value for value, _ in texts] == ["6", "60", "0", "5", "in 1 min", "0"]
    soon = [tile_texts(RemindersLook(5, at, (), ()), wishes, None, 100.0)[4][0] for at in (100 + 3 * 3600 + 600, 40.0)]
    assert soon == ["in 3 h", "now"]


def test_progress_of_a_zone_is_told_in_words():
    rows = [zone_row(ZoneProgress(20_000, "America/New_York", state), {"America/New_York": 7}) for state in (
        None, Progress(21_600, "udr_1"), Progress(21_600, "udr_1", 1))]
    assert [words in row.cells[3] for words, row in zip(("not begun", "under way", "done"), rows, strict=True)]
    assert "America/New York" in rows[0].cells[0] and rows[1].cells[2] == "06:00" and ">7<" in rows[0].cells[1]


@pytest.mark.browser
async def test_reminders_say_how_to_begin_and_then_what_waits(page, store):
    await page.get_by_role("link", name="Reminders", exact=True).click()
    await expect(page.locator(".ks-first")).to_contain_text("Nobody is reminded yet")
    now = SystemClock().now()
    await QUEUED.schedule(store, DueReminder("udr_1", int(now // 86400)), now + 7200)
    await ASSIGN_RUN.at().set(store, AssignRun(started_at=now, finished_at=now, running_time=0.1, attempted=3))
    await EARLIEST.at().set(store, int(now // 86400))
    await ZONES.at(int(now // 86400)).add(store, "Asia/Tokyo", 0)
    await PROGRESS.at("Asia/Tokyo", int(now // 86400)).set(store, Progress(21_600, "udr_1"))
    await expect(page.get_by_label("Queued", exact=True)).to_contain_text("1")
    await expect(page.get_by_label("Progress")).to_contain_text("Asia/Tokyo")
    await expect(page.get_by_label("Wanted").locator("tbody tr")).to_have_count(7)
    for width in (390, 768, 1280):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
