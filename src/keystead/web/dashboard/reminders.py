"""Daily reminders: who wants them when, when they arrived, what waits for its time, and how far the jobs are."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Final, Generic, TypeVar

from nicegui import ui

from keystead.app import Running
from keystead.clock import speed_of
from keystead.dates import UnixDate, unix_date_to_date
from keystead.reminders.heat import Grid, Wishes, happened, wished
from keystead.reminders.keys import EARLIEST, PROGRESS, QUEUED, ZONES
from keystead.reminders.models import Progress
from keystead.reminders.stats import ASSIGN_RUN, SEND_RUN
from keystead.stats import Series
from keystead.stats.charts_live import RunView
from keystead.web.dashboard.jobs_shown import number, plural
from keystead.web.dashboard.live_table import Column, LiveTable, Row
from keystead.web.dashboard.messages import messages_frame
from keystead.web.dashboard.messages_person import time_said
from keystead.web.dashboard.reminders_heat import busiest, heat_html
from keystead.web.dashboard.shown import NOTHING, chip, shown_count, shown_duration
from keystead.web.dashboard.stats_frame import Look, keep_looking, problem_banner
from keystead.web.dashboard.stats_runs import COLUMNS as RUN_COLUMNS
from keystead.web.dashboard.stats_runs import run_row
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import LiveSeries, Shared, StatsWatch

T = TypeVar("T")

WALK_SECONDS: Final = 5.0
# Walks over a whole table; after a long one the rest is so many times as long.
REST_FACTOR: Final = 60
HAPPENED_DAYS: Final = 7
SHOWN_DAYS: Final = 7
SHOWN_ZONES: Final = 60
MOST_DATES: Final = 4
CHANNELS: Final = ("email", "sms", "push")
TILES: Final = ("Email", "Text", "Push", "Queued", "Next one", "Sent")
RUNS: Final = {key.pattern.removeprefix("stats:"): key for key in (ASSIGN_RUN, SEND_RUN)}
ZONE_COLUMNS: Final = (
    Column("Day and zone"), Column("Reminders", "num mid"), Column("Chosen up to", "num"), Column("State", "num"),
)
FIRST_STEPS: Final = """<div class="ks-first"><h2>Nobody is reminded yet</h2>
<p>Everybody who can be reached on a channel gets a daily reminder there, in the morning unless they say otherwise.
Give somebody a verified address:</p>
<pre class="ks-code">await running.switchboard.contacts.add_email(ada.sub, "ada@example.com", verified=True)</pre>
<p>They say when they want it with <span class="mono">POST /api/1/users/me/attributes/notification_time</span>. A time
is chosen for each reminder shortly before its window opens, by the clock of its reader.</p>
<p>This page moves by itself as soon as there is something to show.</p></div>"""


@dataclass(frozen=True, slots=True)
class ZoneProgress:
    """How far one day in one zone is."""

    unix_date: int
    zone: str
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class RemindersLook:
    """What is true now. ``runs``: the two jobs, in their order."""

    queued: int
    next_at: float | None
    runs: tuple[RunView, ...]
    zones: tuple[ZoneProgress, ...]


async def look_at(running: Running) -> RemindersLook:
    """A few round trips, whatever waits."""
    valkey = running.valkey
    queued, next_at = await asyncio.gather(QUEUED.size(valkey), QUEUED.next_at(valkey))
    runs = {run.name: run for run in await running.charts.runs()}
    return RemindersLook(queued, next_at, tuple(_run_of(runs, name) for name in RUNS), await _zones(running))


def _run_of(runs: Mapping[str, RunView], name: str) -> RunView:
    """Of the catalogue, whose names may carry more of the key than ours."""
    return next((run for key, run in runs.items() if key.endswith(name)), RunView(name, RUNS[name].purpose))


async def _zones(running: Running) -> tuple[ZoneProgress, ...]:
    """From the first day that is not done; there are two or three."""
    earliest = await EARLIEST.at().get(running.valkey)
    if earliest is None:
        return ()
    found: list[ZoneProgress] = []
    for day in range(earliest, earliest + MOST_DATES):
        zones = [zone for zone, _ in await ZONES.at(day).range(running.valkey)]
        states = await asyncio.gather(*(PROGRESS.at(zone, day).get(running.valkey) for zone in zones))
        found += [ZoneProgress(day, zone, state) for zone, state in zip(zones, states, strict=True)]
    return tuple(found)


class Seldom(Generic[T]):
    """Reads something costly, and after that rests in proportion to how long it took."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read, self._next_at = read, 0.0

    async def __call__(self, before: T | None) -> T:
        loop = asyncio.get_running_loop()
        began = loop.time()
        if before is not None and began < self._next_at:
            return before
        found = await self._read()
        self._next_at = loop.time() + REST_FACTOR * (loop.time() - began)
        return found


async def show_reminders(running: Running, sampler: Sampler, watch: StatsWatch) -> None:
    """Build the page for one viewer; it then moves by itself, from what is read once for all viewers."""

    async def read_live(_: RemindersLook | None) -> RemindersLook:
        return await look_at(running)

    read_wishes = Seldom(lambda: wished(running.database))
    read_happened = Seldom(lambda: happened(running.database, running.clock.now() - HAPPENED_DAYS * 86_400))

    def bounds() -> tuple[int, int]:
        end = int((running.clock.now() + 14 * 3600) // 86_400) + 1
        return end - SHOWN_DAYS, end

    live = watch.share("reminders now", read_live)
    wishes = watch.share("reminders wished", read_wishes, WALK_SECONDS)
    past = watch.share("reminders happened", read_happened, WALK_SECONDS)
    sent = watch.share("reminders sent", LiveSeries(running.charts, "daily_reminders", bounds))
    await asyncio.gather(live.first(), wishes.first(), past.first(), sent.first())
    with messages_frame(running, sampler, "/reminders"):
        with ui.element("div").classes("ks-head"), ui.element("div"):
            ui.html("Reminders", sanitize=True, tag="h1")
            below = ui.html("", sanitize=True, tag="p")
        problem = problem_banner(sampler, live, wishes, past, sent)
        with ui.element("section").classes("ks-card hidden") as first:
            ui.html(FIRST_STEPS, sanitize=False)
        with ui.element("div") as rest:
            looks = [_tiles(running, live, wishes, sent), _heat("When they are wanted", wishes), _heat_past(past)]
        jobs = _jobs(running, live, wishes)

    def look() -> None:
        problem()
        bare = wishes.value is not None and not wishes.value.channels and not (live.value and live.value.queued)
        first.classes(remove="hidden") if bare else first.classes(add="hidden")
        rest.classes(add="hidden") if bare or wishes.value is None else rest.classes(remove="hidden")
        below.set_content(escape(summary(wishes.value)))
        for each in (*looks, jobs):
            each()

    keep_looking(look, live, wishes, past, sent)


def summary(wishes: Wishes | None) -> str:
    if wishes is None:
        return "Waiting for the first answer…"
    total = sum(wishes.channels.values())
    if not total:
        return "One a day for whoever wants it, at a moment of their own choosing."
    peak = busiest(wishes.grid)
    when = "" if peak is None else f"; the busiest hour is {peak[1]}:00 to {peak[1] + 1}:00"
    zones = plural(len(wishes.zones), "time zone")
    return f"{plural(total, 'reminder')} in {zones}{when}, by the clock of their readers."


def tile_texts(
    live: RemindersLook | None, wishes: Wishes | None, sent: Series | None, now: float
) -> list[tuple[str, str]]:
    """Value and the line below it, for each tile."""
    channels = wishes.channels if wishes else {}
    total = sum(channels.values())
    made = [(shown_count(channels.get(name, 0)), f"{100 * channels.get(name, 0) / total:.0f} % of all" if total else "")
            for name in CHANNELS]
    made.append((NOTHING, "") if live is None else (shown_count(live.queued), "have their time"))
    next_at = live.next_at if live else None
    made.append((NOTHING, "none has its time") if next_at is None else (_soon(next_at - now), "is handed over"))
    days = sent.counts["sent"] if sent else [0]
    made.append((shown_count(sum(days)), f"handed over in {SHOWN_DAYS} days"))
    return made


def _soon(seconds: float) -> str:
    """Only the largest unit: a tile has no room for two, and what is due now is being handed over."""
    return "now" if seconds < 1 else f"in {' '.join(shown_duration(seconds).split()[:2])}"


def _tiles(
    running: Running, live: Shared[RemindersLook], wishes: Shared[Wishes], sent: Shared[Series]
) -> Look:
    shown: list[tuple[ui.html, ui.html]] = []
    with ui.element("div").classes("ks-tiles"):
        for name in TILES:
            with ui.element("section").classes("ks-tile").props(f'aria-label="{name}"'):
                ui.html(name, sanitize=True).classes("name")
                shown.append((ui.html(NOTHING, sanitize=True).classes("value"),
                              ui.html("", sanitize=True).classes("more")))

    def look() -> None:
        texts = tile_texts(live.value, wishes.value, sent.value, running.clock.now())
        for (value, more), (value_text, more_text) in zip(shown, texts, strict=True):
            value.set_content(value_text)
            more.set_content(more_text)

    return look


def _heat(title: str, wishes: Shared[Wishes]) -> Look:
    with ui.element("section").classes("ks-card").props('aria-label="Wanted"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html(title, sanitize=True, tag="h2")
            ui.html("reminders to be expected, by local weekday and hour", sanitize=True).classes("quiet")
        body = ui.html("", sanitize=False)

    def look() -> None:
        if wishes.value is not None and (text := heat_html(wishes.value.grid, "reminders")) != body.content:
            body.set_content(text)

    return look


def _heat_past(past: Shared[Grid]) -> Look:
    with ui.element("section").classes("ks-card").props('aria-label="Arrived"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("When they arrived", sanitize=True, tag="h2")
            ui.html(f"the last {HAPPENED_DAYS} days, by local weekday and hour", sanitize=True).classes("quiet")
        body = ui.html("", sanitize=False)

    def look() -> None:
        if past.value is None:
            return
        text = heat_html(past.value, "arrived") if busiest(past.value) is not None else \
            '<div class="ks-empty">None has arrived in these days.</div>'
        if text != body.content:
            body.set_content(text)

    return look


def _jobs(running: Running, live: Shared[RemindersLook], wishes: Shared[Wishes]) -> Look:
    with ui.element("section").classes("ks-card").props('aria-label="Jobs"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Last runs", sanitize=True, tag="h2")
        runs = LiveTable(RUN_COLUMNS, classes="ks-runs")
    with (ui.element("section").classes("ks-card").props('aria-label="Progress"'),
          ui.element("details").classes("ms-fold")):
        with ui.element("summary").classes("ks-card-head"):
            ui.html("Times chosen, by zone", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        zones = LiveTable(ZONE_COLUMNS, classes="ms-zones")

    def look() -> None:
        if live.value is None:
            return
        now = running.clock.now()
        rows = [run_row(run, now, speed_of(running.clock)) if run.started_at or run.problem else _never(run)
                for run in live.value.runs]
        runs.show(rows)
        every = live.value.zones
        says.set_content(f"{sum(_finished(one) for one in every)} of {len(every)} done" if every else "")
        counts = wishes.value.zones if wishes.value else {}
        shown = sorted(every, key=lambda one: (one.unix_date, -counts.get(one.zone, 0), one.zone))
        zones.show([zone_row(one, counts) for one in shown[:SHOWN_ZONES]],
                   empty="No day is gone through now. Times are chosen half an hour before a window opens.")

    return look


def _never(run: RunView) -> Row:
    return Row(run.name, (f'<span class="mono">{broken_up(run.name)}</span>', NOTHING, NOTHING, chip("never ran"), ""))


def _finished(one: ZoneProgress) -> bool:
    return one.progress is not None and bool(one.progress.finished)


def zone_row(one: ZoneProgress, counts: Mapping[str, int]) -> Row:
    day = unix_date_to_date(UnixDate(one.unix_date)).isoformat()
    started = one.progress is not None and one.progress.start_time >= 0
    upto = time_said(one.progress.start_time) if one.progress is not None and started else NOTHING
    state = chip("done", "good") if _finished(one) else chip("under way") if started else chip("not begun")
    return Row(f"{one.unix_date} {one.zone}", (
        f'{escape(one.zone.replace("_", " "))}<div class="quiet">{day}</div>', number(counts.get(one.zone, 0)), upto,
        state,
    ))


