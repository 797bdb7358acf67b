"""Messages at a glance: what became of them by channel, how fast they go, what waits, the latest, what went wrong."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from typing import Any, Final

from nicegui import ui

from keystead.app import Running
from keystead.clock import real
from keystead.dates import day_starts_at
from keystead.messaging.links.clicked import ClickedMessages, clicked_messages
from keystead.messaging.touches.stats import SENDS as TOUCH_SENDS
from keystead.stats import Series
from keystead.web.dashboard import messages_chart
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.messages_channels import channels_card
from keystead.web.dashboard.messages_failed import DeadGroup, dead_card, dead_groups, failures_card
from keystead.web.dashboard.messages_funnel import FAMILIES, SHOWN_DAYS, funnel, funnel_html, has_counted
from keystead.web.dashboard.messages_latest import Choice, latest_card, latest_touches
from keystead.web.dashboard.messages_look import CHANNELS, NAMES, MessagesLook, is_busy, look_at
from keystead.web.dashboard.shown import shown_count, shown_rate
from keystead.web.dashboard.stats_frame import Look, keep_looking
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.message_rates import STEPS, MessageRateSampler
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import LiveSeries, Shared, StatsWatch

CLICKS_SECONDS: Final = 60.0
DEAD_SECONDS: Final = 5.0
FIRST_STEPS: Final = """<div class="ks-first"><h2>Nothing has been sent yet</h2>
<p>A person who can be reached is told of an event. Give somebody an address and write to them:</p>
<pre class="ks-code">async with App(load_settings()).running() as running:
    ada = await running.users.ensure("example", "ada", given_name="Ada")
    await running.switchboard.contacts.add_email(ada.sub, "ada@example.com", verified=True)
    await running.switchboard.messaging.touch(ada.sub, "daily_reminder", parameters={...})</pre>
<p>or, for somebody who is known already:</p>
<pre class="ks-code">keystead message send USER daily_reminder</pre>
<p>This page moves by itself as soon as there is something to show. Until a provider is set, messages go to the
<a class="ks-link" href="/sandbox">sandbox</a>, which delivers to nobody.</p></div>"""


@contextmanager
def messages_frame(running: Running, sampler: Sampler, current: str = "/messages") -> Iterator[None]:
    """Everything inside the block is the page."""
    assets = files("keystead.web").joinpath("assets")
    css = [assets.joinpath(name).read_text(encoding="utf-8") for name in ("stats.css", "messages.css")]
    with page_frame(sampler, running.clock, current=current):
        ui.add_head_html(f"<style>{''.join(css)}</style>")  # after the sheet of all pages, which they go on with
        yield


def search_box(value: str = "") -> None:
    """Where a person, or a message, is asked for."""
    ui.html(
        '<form class="ms-find" action="/messages/person" role="search"><input class="ks-filter" name="user" '
        f'value="{escape(value)}" autocomplete="off" spellcheck="false" maxlength="300" '
        'placeholder="Sub, email, phone or uid…" aria-label="Find a person or a message" required>'
        '<button class="ks-btn accent">Find</button></form>', sanitize=False)


async def show_messages(running: Running, sampler: Sampler, watch: StatsWatch, rates: MessageRateSampler) -> None:
    """Build the page for one viewer; it then moves by itself, from what is read once for all viewers."""
    live, counted, clicks, dead = _shared(running, watch)
    latest = latest_touches(running, watch, Choice())
    await asyncio.gather(live.first(), counted.first(), clicks.first(), dead.first(), latest.first())
    rates.want()
    with messages_frame(running, sampler):
        step_in = SteppingIn()
        looks = [_head(live), _problem(sampler, live, counted, dead, latest)]
        with ui.element("section").classes("ks-card hidden") as first:
            ui.html(FIRST_STEPS, sanitize=False)
        with ui.element("div") as rest:
            looks += [_funnels(counted, clicks), _rate_card(running, rates)]
            channels = channels_card(running, live, step_in)
            looks.append(latest_card(running, watch))
            with ui.element("div").classes("ks-halves"):
                looks += [dead_card(running, dead, step_in), failures_card(counted)]

    def look() -> None:
        rates.want()
        known = live.value is not None and counted.value is not None
        bare = live.value is not None and counted.value is not None and not (
            is_busy(live.value) or has_counted(counted.value) or dead.value or (latest.value and latest.value.touches))
        first.classes(remove="hidden") if bare else first.classes(add="hidden")
        rest.classes(remove="hidden") if known and not bare else rest.classes(add="hidden")
        for each in looks:
            each()
        channels(rates.newest)

    keep_looking(look, live, counted, clicks, dead)


def _shared(running: Running, watch: StatsWatch) -> tuple[
    Shared[MessagesLook], Shared[dict[str, Series]], Shared[dict[str, ClickedMessages]], Shared[list[DeadGroup]]
]:
    charts, readers = running.charts, {name: _reader(running, name) for name in FAMILIES}

    async def read_live(_: MessagesLook | None) -> MessagesLook:
        return await look_at(running)

    async def read_counted(before: dict[str, Series] | None) -> dict[str, Series]:
        found = await asyncio.gather(*(read((before or {}).get(name)) for name, read in readers.items()))
        return dict(zip(readers, found, strict=True))

    async def read_clicks(_: dict[str, ClickedMessages] | None) -> dict[str, ClickedMessages]:
        today = TOUCH_SENDS.day_of(charts.clock.now())
        since, lately = (day_starts_at(type(today)(day), TOUCH_SENDS.home)
                         for day in (today - SHOWN_DAYS + 1, today))
        return await clicked_messages(running.database, since, lately)

    async def read_dead(_: list[DeadGroup] | None) -> list[DeadGroup]:
        return await dead_groups(running)

    return (watch.share("messages now", read_live), watch.share("messages counted", read_counted),
            watch.share("messages clicked", read_clicks, CLICKS_SECONDS),
            watch.share("messages given up", read_dead, DEAD_SECONDS))


def _reader(running: Running, name: str) -> LiveSeries:
    def bounds() -> tuple[int, int]:
        end = TOUCH_SENDS.day_of(running.clock.now()) + 1
        return end - SHOWN_DAYS, end

    return LiveSeries(running.charts, name, bounds)


def _head(live: Shared[MessagesLook]) -> Look:
    with ui.element("div").classes("ks-head"):
        with ui.element("div"):
            ui.html("Messages", sanitize=True, tag="h1")
            ui.html("Push, text and email: each message ends in exactly one state.", sanitize=True, tag="p")
        with ui.element("div").classes("ms-side"):
            state = ui.html("", sanitize=True, tag="span").classes("ks-state hidden").props("role=status")
            search_box()

    def look() -> None:
        if live.value is None:
            return
        words, tone = standing(live.value)
        state.set_content(escape(words))
        state.classes(remove="hidden away warn idle", add=tone)

    return look


def standing(look: MessagesLook) -> tuple[str, str]:
    """The one thing to know, and its tone: away, warn, idle or nothing."""
    if broken := [one.name for one in look.channels if one.breaker != "closed"]:
        return f"{_listed(broken)}: the provider fails", "away"
    if paused := [one.name for one in look.channels if one.is_held]:
        return f"{_listed(paused)} paused", "warn"
    if look.pending.overdue or any(one.overdue for one in look.channels):
        return "News is overdue", "warn"
    if dead := sum(one.dead for one in look.channels):
        return f"{shown_count(dead)} given up", "warn"
    return ("On their way", "") if is_busy(look) else ("Nothing waits", "idle")


def _listed(channels: list[str]) -> str:
    return " and ".join([NAMES[name] for name in channels])


def _problem(sampler: Sampler, *shared: Shared[Any]) -> Look:
    banner = ui.html("", sanitize=False).classes("ks-banner hidden").props("role=alert")

    def look() -> None:
        problem = next((one.problem for one in shared if one.problem is not None), None)
        if problem is not None:
            banner.set_content(f"<b>Messages cannot be read</b><div>{escape(problem)}</div>"
                               "<div>What is shown is what was last known.</div>")
        told = problem is not None and sampler.away_since is None
        banner.classes(remove="hidden") if told else banner.classes(add="hidden")

    return look


def _funnels(counted: Shared[dict[str, Series]], clicks: Shared[dict[str, ClickedMessages]]) -> Look:
    shown: dict[str, ui.html] = {}
    with ui.element("div").classes("ms-three"):
        for name in CHANNELS:
            with ui.element("section").classes(f"ks-card ms-card {name}").props(f'aria-label="{NAMES[name]} funnel"'):
                ui.html(NAMES[name], sanitize=True, tag="h2").classes(f"ms-name {name}")
                shown[name] = ui.html("", sanitize=False)

    def look() -> None:
        if counted.value is None:
            return
        for name, body in shown.items():
            if (text := funnel_html(funnel(name, counted.value, clicks.value or {}))) != body.content:
                body.set_content(text)

    return look


def _rate_card(running: Running, rates: MessageRateSampler) -> Look:
    with ui.element("section").classes("ks-card"):
        with ui.element("div").classes("ks-card-head"):
            ui.html("<h2>Sent per second</h2><span class=quiet>last five minutes, your local time</span>",
                    sanitize=False)
            now = ui.html("", sanitize=True).classes("ks-legend ms-legend").props("data-rates")
        chart = ui.echart(messages_chart.options(rates.samples, real(running.clock).now())).classes("ks-chart")
    drawn = False

    def look() -> None:
        nonlocal drawn
        newest, sent = rates.newest, STEPS.index("sent")
        now.set_content("".join(
            f'<span class="{name}"><b>{shown_rate(newest.by_channel[name][sent] if newest else None)}</b> '
            f"{NAMES[name].lower()}</span>" for name in CHANNELS))
        if drawn:
            chart.run_chart_method("setOption", messages_chart.moved(rates.samples, real(running.clock).now()))
        drawn = True

    return look
