"""The rows of one day: visits and sign-ups by the campaign they came from."""

from datetime import date, timedelta
from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui

from keystead import dates
from keystead.app import Running
from keystead.dates import UnixDate
from keystead.patterns import RowsByDay
from keystead.stats.charts_calendar import today_of
from keystead.stats.charts_rows import DayRows
from keystead.web.dashboard.shown import chip, shown_count
from keystead.web.dashboard.stats_frame import keep_looking, one_head, problem_banner, stats_frame
from keystead.web.dashboard.stats_shown import csv_address, exact, titled
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

SHOWN_ROWS: Final = 300
EVERY_SECONDS: Final = 4.0


async def show_rows(running: Running, sampler: Sampler, watch: StatsWatch, one: RowsByDay, day: str = "") -> None:
    """Build the page for one viewer; a day that is still counted moves by itself."""
    today = today_of(one, running.clock.now())
    chosen, problem_said = chosen_day(day, today)

    async def read(_: DayRows | None) -> DayRows:
        return await running.charts.rows(one.name, chosen)

    shared = watch.share(("rows", one.name, chosen), read, EVERY_SECONDS)
    await shared.first()
    path = f"/stats/{quote(one.name, safe=':')}"
    with stats_frame(running, sampler):
        one_head(one)
        ui.html(day_picker(path, chosen, today), sanitize=False)
        if problem_said:
            ui.html(f"<b>This day cannot be shown</b><div>{escape(problem_said)}</div>", sanitize=False).classes(
                "ks-banner").props("role=alert")
        problem = problem_banner(sampler, shared)
        with ui.element("section").classes("ks-card").props('aria-label="Rows"'):
            with ui.element("div").classes("ks-card-head"):
                says = ui.html("", sanitize=False, tag="h2")
                csv = csv_address(one, (chosen, chosen + 1))
                ui.html(f'<a class="ks-btn" href="{escape(csv)}" download>CSV</a>', sanitize=False)
            table = ui.html("", sanitize=False).classes("ks-wide").props('tabindex=0 role=region aria-label="Table"')
    drawn: DayRows | None = None

    def look() -> None:
        nonlocal drawn
        problem()
        if shared.value is not None and shared.value is not drawn:
            drawn = shared.value
            live = " " + chip("still counting", "warn") if drawn.live else ""
            says.set_content(f"{escape(drawn.label)}{live}")
            table.set_content(rows_html(drawn))

    keep_looking(look, shared)


def chosen_day(said: str, today: int) -> tuple[int, str]:
    """The day of the address; today, and why, if that is none."""
    if not said:
        return today, ""
    try:
        day = int(dates.date_to_unix_date(date.fromisoformat(said)))
    except ValueError:
        return today, "A day is written as 2026-03-01. Below is today."
    if not 0 <= day <= today:
        return today, "That day has not begun, or lies before 1970. Below is today."
    return day, ""


def day_picker(path: str, chosen: int, today: int) -> str:
    """The day before, the day after, and a form for any other."""
    day = dates.unix_date_to_date(UnixDate(chosen))
    before, after = day - timedelta(days=1), day + timedelta(days=1)
    newest = dates.unix_date_to_date(UnixDate(today))
    later = f'<a href="{escape(path)}?day={after}">{after} →</a>' if after <= newest else ""
    return (
        f'<div class="ks-range"><nav class="ks-tabs" aria-label="Days beside"><a href="{escape(path)}?day={before}">'
        f'← {before}</a><a href="{escape(path)}?day={day}" aria-current="true">{day}</a>{later}</nav>'
        f'<form class="ks-dates" action="{escape(path)}" aria-label="Another day"><input type="date" name="day" '
        f'value="{day}" min="1970-01-01" max="{newest}" required aria-label="Day"><button class="ks-btn">Show</button>'
        "</form></div>"
    )


def rows_html(day: DayRows) -> str:
    """A row for each, in their order, with a sum above them. Negative counts are possible: sign-ups may move."""
    if not day.rows:
        return '<div class="ks-empty">Nothing was counted on this day.</div>'
    head = "".join(f'<th scope="col" class="num">{escape(titled(field))}</th>' for field in day.fields)
    sums = "".join(f'<td class="num">{exact(sum(counts[field] for _, counts in day.rows))}</td>'
                   for field in day.fields)
    rows = "".join(
        f'<tr><th scope="row" class="mono">{_named(row)}</th>'
        + "".join(f'<td class="num{"" if counts[field] else " zero"}">{exact(counts[field])}</td>'
                  for field in day.fields) + "</tr>"
        for row, counts in day.rows[:SHOWN_ROWS]
    )
    left = len(day.rows) - SHOWN_ROWS
    more = f'<div class="ks-note">and {shown_count(left)} more; the CSV has all of them</div>' if left > 0 else ""
    return (f'<table class="ks-days"><thead><tr><th scope="col">{escape(titled(day.row_name))}</th>{head}</tr></thead>'
            f'<tbody><tr class="sum"><th scope="row">All {shown_count(len(day.rows))}</th>{sums}</tr>{rows}</tbody>'
            f"</table>{more}")


def _named(row: str) -> str:
    """A long chain of campaign facts may go on in the next line."""
    return escape(row).replace("&amp;", "&amp;<wbr>") or '<span class="quiet">without a name</span>'
