"""The first page, on one screen: is it healthy, and what is it doing?"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from nicegui import ui

from keystead.app import Running
from keystead.clock import real, speed_of
from keystead.jobs import Inspection
from keystead.operations import Census
from keystead.stats import Series
from keystead.web.dashboard import overview_chart
from keystead.web.dashboard.chart import Point
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.jobs_shown import clock_time, cut, moment
from keystead.web.dashboard.keys_server import summary
from keystead.web.dashboard.messages_look import CHANNELS, NAMES
from keystead.web.dashboard.overview_chart import jobs_ended, messages_sent
from keystead.web.dashboard.overview_judged import Lately, Part, Trouble, lately, parts, troubles, verdict
from keystead.web.dashboard.overview_look import OverviewLook, active_days, active_today, read_overview
from keystead.web.dashboard.shown import NOTHING, shown_bytes, shown_count, shown_rate
from keystead.web.dashboard.stats_frame import keep_looking
from keystead.web.dashboard.stats_spark import sparkline
from keystead.web.dashboard.welcome import show_welcome
from keystead.web.job_rates import JobRateSampler
from keystead.web.message_rates import STEPS, MessageRateSampler
from keystead.web.request_rates import RequestRateSampler
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import Shared, StatsWatch

Look = Callable[[], None]

SPARK_SECONDS = 90
TOWN = "keystead.demo.program"


@dataclass(frozen=True, slots=True)
class Rates:
    """What is sampled each second, once for all who look."""

    requests: RequestRateSampler
    jobs: JobRateSampler
    messages: MessageRateSampler


@dataclass(frozen=True, slots=True)
class Tile:
    """A number that moves: with its unit, a line below it, and its last minutes as a line."""

    name: str
    value: str
    unit: str
    more: str
    spark: str
    address: str


async def show_overview(
    running: Running, sampler: Sampler, census: Census, watch: StatsWatch, inspection: Inspection, rates: Rates
) -> None:
    """Build the page for one viewer; it then moves by itself, from what is read once for all viewers."""
    count_active = active_days(running)

    async def read(_: OverviewLook | None) -> OverviewLook:
        return await read_overview(running, inspection)

    async def read_active(before: Series | None) -> Series:
        return await count_active(before)

    shared, active = watch.share("overview", read), watch.share("people active", read_active)
    rates.messages.want()
    await asyncio.gather(shared.first(), active.first())
    with page_frame(sampler, running.clock, current="/"):
        looks = [_welcome(running, shared), _head(running, sampler, census, shared), _tiles(sampler, active, rates)]
        with ui.element("div").classes("ks-sides"):
            with ui.element("div"):
                looks += [_attention_card(running, sampler, census, shared), _activity_card(running, rates)]
            looks.append(_lately_card(running, shared))

    def look() -> None:
        rates.messages.want()
        for each in looks:
            each()

    keep_looking(look, shared, active)


def _welcome(running: Running, shared: Shared[OverviewLook]) -> Look:
    town = TOWN in running.settings.program.modules
    card = show_welcome(town=town)

    def look() -> None:
        is_new = town or (shared.value is not None and shared.value.is_new)
        card.classes(remove="hidden") if is_new else card.classes(add="hidden")

    return look


def _judged(running: Running, sampler: Sampler, census: Census, shared: Shared[OverviewLook]) -> list[Trouble]:
    stray = census.counts.undeclared_keys if census.counts is not None else 0
    return troubles(shared.value, sampler.facts, stray_keys=stray, now=running.clock.now(),
                    speed=speed_of(running.clock))


def _head(running: Running, sampler: Sampler, census: Census, shared: Shared[OverviewLook]) -> Look:
    with ui.element("div").classes("ks-head"), ui.element("div"):
        title = ui.html("", sanitize=True, tag="h1").props("role=status")
        below = ui.html("", sanitize=True, tag="p")
    line = ui.html("", sanitize=False, tag="ul").classes("ks-health").props('aria-label="Health"')

    def look() -> None:
        facts = sampler.facts
        found = parts(shared.value, facts, away=sampler.away_since is not None, dialect=running.database.dialect,
                      now=running.clock.now(), speed=speed_of(running.clock))
        words, tone = verdict(shared.value, found, _judged(running, sampler, census, shared))
        title.set_content(escape(words))
        title.classes(remove="good warn bad idle", add=f"ks-verdict {tone}")
        below.set_content(escape(f"{summary(facts)}." if facts else "Waiting for the first answer…"))
        line.set_content(health_html(found))

    return look


def health_html(found: Sequence[Part]) -> str:
    """Each part with a mark of its state; the state is also said in words for those who do not see colours."""
    return "".join(
        f'<li class="{part.tone}"><{"a" if part.address else "span"}{f" href={part.address}" if part.address else ""}>'
        f'<i aria-hidden="true"></i><b>{escape(part.name)}</b><span>{escape(part.says)}</span>'
        f'</{"a" if part.address else "span"}></li>' for part in found
    )


def tiles(sampler: Sampler, active: Series | None, rates: Rates) -> list[Tile]:
    """What it is doing, in six numbers."""
    facts, newest, requests, jobs = sampler.facts, rates.messages.newest, rates.requests.newest, rates.jobs.newest
    sent = STEPS.index("sent")
    by_channel = ", ".join(f"{shown_rate(newest.by_channel[name][sent])} {NAMES[name].lower()}" for name in CHANNELS) \
        if newest is not None else "push, text and email"
    failing = f"{shown_rate(requests.failed)} failed" if requests is not None and requests.failed else "none failed"
    days = active_today(active)
    last = list(sampler.samples)[-SPARK_SECONDS:]
    yesterday = f"yesterday {shown_count(days[-2])}" if len(days) > 1 else "counted when they visit"
    return [
        Tile("Requests", shown_rate(requests.answered if requests else None), "/s", failing,
             _line([one.answered for one in list(rates.requests.samples)[-SPARK_SECONDS:]]), "/log"),
        Tile("Jobs", shown_rate(jobs_ended(jobs)), "/s",
             f"{shown_rate(jobs.tenants)} of tenants, {shown_rate(jobs.failed)} failed" if jobs else "ended",
             _line([jobs_ended(one.rates) for one in list(rates.jobs.samples)[-SPARK_SECONDS:]]), "/jobs"),
        Tile("Messages", shown_rate(messages_sent(newest)), "/s", by_channel,
             _line([messages_sent(one.rates) for one in list(rates.messages.samples)[-SPARK_SECONDS:]]), "/messages"),
        Tile("Active people", shown_count(days[-1]) if days else NOTHING, "today", yesterday,
             sparkline(days, live=1), "/people"),
        Tile("Memory", *_sized(facts.memory_bytes if facts else None),
             f"of {shown_bytes(facts.memory_limit_bytes)}" if facts and facts.memory_limit_bytes else
             f"peak {shown_bytes(facts.memory_peak_bytes)}" if facts else "",
             _level([one.memory_bytes for one in last]), "/keys?order=memory"),
        Tile("Keys", shown_count(facts.keys) if facts else NOTHING, "",
             f"{shown_count(facts.keys_with_ttl)} will expire" if facts else "", _level([one.keys for one in last]),
             "/keys"),
    ]


def _sized(count: int | None) -> tuple[str, str]:
    value, _, unit = (shown_bytes(count) if count is not None else NOTHING).partition(" ")
    return value, unit


def _line(rates: Sequence[float | None]) -> str:
    """A young history lies at the right edge, where an old one ends."""
    return sparkline([0.0] * (SPARK_SECONDS - len(rates)) + [round(rate or 0, 1) for rate in rates])


def _level(amounts: Sequence[int | None]) -> str:
    """A level moves little against its height: the line begins a little below the lowest."""
    known = [amount for amount in amounts if amount is not None]
    floor = min(known, default=0) * 0.98
    return sparkline([0 if amount is None else amount - floor for amount in amounts])


def tile_html(tile: Tile) -> str:
    return (f'<a class="ks-tile live" href="{escape(tile.address)}">'
            f'<span class="name">{escape(tile.name)}</span><span class="value">{escape(tile.value)}'
            f'<small>{escape(tile.unit)}</small></span><span class="more">{escape(tile.more)}</span>{tile.spark}</a>')


def _tiles(sampler: Sampler, active: Shared[Series], rates: Rates) -> Look:
    with ui.element("div").classes("ks-tiles") as grid:
        shown = [ui.html("", sanitize=False) for _ in range(6)]

    def look() -> None:
        for place, tile in zip(shown, tiles(sampler, active.value, rates), strict=True):
            place.set_content(tile_html(tile))
        grid.classes(add="stale") if sampler.away_since is not None else grid.classes(remove="stale")

    return look


def _attention_card(running: Running, sampler: Sampler, census: Census, shared: Shared[OverviewLook]) -> Look:
    with ui.element("section").classes("ks-card").props('aria-label="Needs attention"'):
        ui.html('<div class="ks-card-head" id="attention"><h2>Needs attention</h2></div>', sanitize=False)
        body = ui.html("", sanitize=False)

    def look() -> None:
        body.set_content(troubles_html(_judged(running, sampler, census, shared), known=shared.value is not None))

    return look


def troubles_html(found: Sequence[Trouble], *, known: bool) -> str:
    if not known:
        return '<div class="ks-empty">Waiting for the first answer…</div>'
    if not found:
        return ('<div class="ks-empty">Nothing is stuck and nothing fails. Failed jobs, messages that were given up, '
                "a provider that is down, paused queues and open alerts appear here, with the way to mend them.</div>")
    rows = "".join(
        f'<li class="{one.tone}"><i aria-hidden="true"></i><div><b>{escape(cut(one.title, 120))}</b>'
        f'<span>{escape(cut(one.says, 240))}</span></div><a class="ks-btn" href="{escape(one.address)}">'
        f"{escape(one.does)}</a></li>" for one in found
    )
    return f'<ul class="ks-troubles">{rows}</ul>'


def _lately_card(running: Running, shared: Shared[OverviewLook]) -> Look:
    with ui.element("section").classes("ks-card").props('aria-label="Lately"'):
        ui.html('<div class="ks-card-head"><h2>Lately</h2><span class="quiet">times in UTC</span></div>',
                sanitize=False)
        body = ui.html("", sanitize=False)

    def look() -> None:
        body.set_content(lately_html(lately(shared.value, speed_of(running.clock)), known=shared.value is not None))

    return look


def lately_html(found: Sequence[Lately], *, known: bool) -> str:
    if not found:
        return ('<div class="ks-empty">Nothing has happened yet. Messages that arrive, people who join, jobs that fail '
                "and alerts appear here as they happen.</div>" if known else
                '<div class="ks-empty">Waiting for the first answer…</div>')
    rows = "".join(
        f'<li class="{one.tone}"><time title="{moment(one.at)}">{clock_time(one.at)}</time><i aria-hidden="true"></i>'
        f'<a href="{escape(one.address)}">{escape(one.what)}{f" <b>{one.times} times</b>" if one.times > 1 else ""}'
        f'<span class="quiet">{escape(cut(one.says, 80))}</span></a></li>' for one in found
    )
    return f'<ul class="ks-lately">{rows}</ul>'


def _activity_card(running: Running, rates: Rates) -> Look:
    clock = real(running.clock)

    def lines() -> dict[str, list[Point]]:
        return overview_chart.points(rates.requests.samples, rates.jobs.samples, rates.messages.samples, clock.now())

    with ui.element("section").classes("ks-card").props('aria-label="Activity"'):
        ui.html('<div class="ks-card-head"><div><h2>Activity per second</h2><span class="quiet">last five minutes, '
                'your local time</span></div><div class="ks-legend ks-activity"><span class="requests">requests</span>'
                '<span class="jobs">jobs ended</span><span class="messages">messages sent</span></div></div>',
                sanitize=False)
        chart = ui.echart(overview_chart.options(lines(), clock.now())).classes("ks-chart")
    drawn = False

    def look() -> None:
        nonlocal drawn
        if drawn:
            chart.run_chart_method("setOption", overview_chart.moved(lines(), clock.now()))
        drawn = True

    return look
