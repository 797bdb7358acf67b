"""The latest messages: what was just sent to anybody, and what became of it; of one channel, or what went wrong.

Each choice is read once for all who made it, and only while somebody looks. Rows stand still under the pointer: where
much is sent, a link would be gone before it is clicked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any, Final

from nicegui import ui

from keystead.app import Running
from keystead.messaging.touches import CHANNELS, Channel, LatestTouch, LatestTouches
from keystead.web.dashboard.jobs_shown import cut, moment
from keystead.web.dashboard.live_table import Column, LiveTable, Row, button
from keystead.web.dashboard.messages_look import NAMES, TONES, trace_address
from keystead.web.dashboard.people_page import person_address
from keystead.web.dashboard.shown import chip, shown_ago
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.stats_watch import EVERY_SECONDS, Shared, StatsWatch

Look = Callable[[], None]

SHOWN: Final = (10, 50, 200)  # at first, and each time that somebody asks for more
FAILED_SECONDS: Final = 5.0  # fewer come, and to find those of a channel more is looked at
COLUMNS: Final = (
    Column("Event"), Column("Channel", "mid"), Column("Person", "mid ms-person-of"), Column("State", "ms-state"),
    Column("When", "when"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a viewer wants to see."""

    channel: Channel | None = None
    failed: bool = False
    most: int = SHOWN[0]

    @property
    def more(self) -> int | None:
        """How many could be shown instead; None if these are the most."""
        return next((size for size in SHOWN if size > self.most), None)


def latest_touches(running: Running, watch: StatsWatch, choice: Choice) -> Shared[LatestTouches]:
    """What was chosen, read once for all who chose it."""

    async def read(_: LatestTouches | None) -> LatestTouches:
        return await running.switchboard.history.latest(
            most=choice.most, channel=choice.channel, failed=choice.failed)

    return watch.share(("latest messages", choice), read, FAILED_SECONDS if choice.failed else EVERY_SECONDS)


def latest_card(running: Running, watch: StatsWatch) -> Look:
    """A few at first, of all channels."""
    choice, still = Choice(), False
    shared = latest_touches(running, watch, choice)
    with ui.element("section").classes("ks-card").props('aria-label="Latest messages"'):
        with ui.element("div").classes("ks-card-head"):
            with ui.element("div"):
                ui.html("Latest messages", sanitize=True, tag="h2")
                says = ui.html("", sanitize=True).classes("quiet")
            with ui.element("div").classes("ms-choices"):
                outcomes = _tabs("Outcome", {False: "All", True: "Failed"})
                channels = _tabs("Channel", {None: "All channels", **{name: NAMES[name] for name in CHANNELS}})
        with ui.element("div") as rows:
            table = LiveTable(COLUMNS, classes="ms-latest")
        with ui.element("div").classes("ms-more hidden") as below:
            more = button("Show more")

    def look() -> None:
        shared.want()
        found, now = shared.value, running.clock.now()
        says.set_content(escape(said(choice, still, shared.problem)))
        if found is None or still:
            return
        table.show([latest_row(touch, now, failed=choice.failed) for touch in found.touches],
                   empty=nothing(choice, found))
        follows = found.before is not None and found.touches and choice.more is not None
        below.classes(remove="hidden") if follows else below.classes(add="hidden")

    async def choose(**changes: Any) -> None:
        nonlocal choice, shared, still
        choice, still = replace(choice, **{"most": SHOWN[0], **changes}), False
        shared = latest_touches(running, watch, choice)
        for chosen, tabs in ((choice.failed, outcomes), (choice.channel, channels)):
            for value, tab in tabs.items():
                tab.props(f"aria-pressed={'true' if value == chosen else 'false'}")
        await shared.first()
        table.head(len(COLUMNS) - 1, "Failed" if choice.failed else COLUMNS[-1].title)
        look()

    def hold(held: bool) -> None:
        nonlocal still
        still = held
        look()

    for failed, tab in outcomes.items():
        tab.on("click", partial(choose, failed=failed)).props(f"aria-pressed={'false' if failed else 'true'}")
    for channel, tab in channels.items():
        tab.on("click", partial(choose, channel=channel)).props(f"aria-pressed={'false' if channel else 'true'}")
    more.on("click", lambda: choose(most=choice.more or choice.most))
    rows.on("mouseenter", partial(hold, True)).on("mouseleave", partial(hold, False))
    return look


def _tabs(label: str, names: Mapping[Any, str]) -> dict[Any, ui.html]:
    with ui.element("div").classes("ks-tabs").props(f'role=group aria-label="{label}"'):
        return {value: ui.html(name, sanitize=True, tag="button").props("type=button")
                for value, name in names.items()}


def said(choice: Choice, still: bool, problem: str | None) -> str:
    """The line below the heading."""
    if problem is not None:
        return f"Cannot be read: {problem}"
    if still:
        return "Holds still while you point at it."
    return "What went wrong last comes first." if choice.failed else "Newest first; each leads to its whole life."


def nothing(choice: Choice, found: LatestTouches) -> str:
    """What stands in place of rows."""
    about = f"{NAMES[choice.channel].lower()} messages" if choice.channel else "messages"
    if not choice.failed:
        return f"No {about} were sent yet."
    return f"No {about} are among the latest failures." if found.before else f"No {about} failed."


def latest_row(touch: LatestTouch, now: float, *, failed: bool = False) -> Row:
    """A touch in the list, with the time when it was sent or ``failed``. Who it is for is told by their sub alone."""
    name = escape(NAMES.get(touch.channel, touch.channel))
    person = f'<a class="mono" href="{escape(person_address(touch.user_sub))}">{escape(cut(touch.user_sub, 60))}</a>'
    why = touch.reason or ("no address" if touch.status == "unreachable" else "")
    reason = f'<div class="quiet">{escape(cut(why.replace("_", " "), 80))}</div>' if why else ""
    at = touch.changed_at if failed else touch.at
    return Row(touch.uid, (
        f'<a class="mono" href="{escape(trace_address(touch.uid))}">{broken_up(cut(touch.event or touch.uid, 80))}</a>'
        f'<div class="quiet ms-narrow">{name} {person}</div>',
        f'<span class="ms-name {escape(touch.channel)}">{name}</span>', person,
        chip(touch.status, TONES.get(touch.status, "")) + reason,
        f'<span title="{moment(at)}">{shown_ago(now - at)}</span>',
    ))
