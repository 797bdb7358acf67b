"""The life of one message as a line: each step with the time since the one before, and where it is now."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from nicegui import ui

from keystead.app import Running
from keystead.messaging.touches import TraceEvent
from keystead.web.dashboard.jobs_shown import cut, moment, plural
from keystead.web.dashboard.messages import messages_frame, search_box
from keystead.web.dashboard.messages_look import trace_address
from keystead.web.dashboard.messages_person import UIDS
from keystead.web.dashboard.shown import chip, shown_duration
from keystead.web.dashboard.stats_frame import keep_looking, problem_banner
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

# Words in a step, or in the facts that say how it ended, that are bad news, and those that are good.
SAD: Final = ("fail", "abandon", "given up", "unreachable", "improper", "stale", "bounce", "complaint", "suppressed",
              "undelivered", "lost", "no news", "no receipt", "unretryable", "throttled")
GLAD: Final = frozenset(("reached", "sent", "delivered", "read", "ok", "success", "delivery"))
OUTCOMES: Final = ("status", "told", "failed", "health", "outcome")
MOST_FACT: Final = 120
# How a life ended, by the last of its steps that tells; first come those that nothing can follow.
ENDS: Final = (
    ("destination reached", "It arrived.", "good"), ("send_success", "It arrived.", "good"),
    ("send_unretryable", "It failed for good.", "bad"), ("send_abandon", "It was given up.", "bad"),
    ("given up", "It was given up.", "bad"), ("abandoned", "It was given up.", "bad"),
    ("unreachable", "Nobody was reached: there is no address, or they were to be spared.", "warn"),
    ("improper", "It could not be sent like this.", "bad"), ("stale", "It waited for too long.", "bad"),
)
ROWS: Final = "tch_r_"  # uids of rows, which have no life of their own


@dataclass(slots=True)
class Moment:
    """One step with what was counted at it. ``after``: seconds since the step before, None for the first."""

    at: float | None
    source: str
    about: str
    what: str
    facts: dict[str, Any]
    after: float | None
    counted: list[str] = field(default_factory=list)


def moments(events: Sequence[TraceEvent]) -> list[Moment]:
    """The steps, rows and jobs in their order; what was counted belongs to the step it was counted with."""
    found: list[Moment] = []
    last: float | None = None
    for event in events:
        if event.source == "now":
            continue
        if event.source == "count":
            owner = next((one for one in reversed(found) if (one.at, one.about) == (event.at, event.about)), None)
            if owner is not None:
                owner.counted.append(event.what)
            continue
        after = None if last is None or event.at is None else max(0.0, event.at - last)
        found.append(Moment(event.at, event.source, event.about, event.what, dict(event.facts), after))
        last = event.at if event.at is not None else last
    return found


def shown_after(seconds: float | None) -> str:
    """``+12 ms``, ``+3.2 s``, ``+2 min 4 s``."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"+{seconds * 1000:.0f} ms"
    return f"+{seconds:.1f} s" if seconds < 60 else f"+{shown_duration(seconds)}"


def tone_of(what: str, facts: dict[str, Any]) -> str:
    """Good, bad or a warning, by what it says; nothing for a step on the way."""
    said = " ".join([what, *(str(facts.get(name, "")) for name in OUTCOMES)]).lower().replace("_", " ")
    if "retr" in what.replace("unretryable", ""):
        return "warn"
    if any(word in said for word in SAD) or facts.get("failed"):
        return "bad"
    return "good" if GLAD & set(said.split()) else ""


def timeline_html(found: Sequence[Moment], uid: str) -> str:
    """An ordered list; messages of a touch are told apart by their uids."""
    items = []
    for one in found:
        facts = "".join(f"<span>{escape(name)} <b>{fact_html(value)}</b></span>"
                        for name, value in one.facts.items() if value not in ("", None))
        counted = "".join(f'<span class="ks-chip">+1 {broken_up(name)}</span>' for name in one.counted)
        kind = "" if one.source == "step" else one.source
        about = f'<span class="ms-about mono">{fact_html(one.about)}</span>' if one.about and one.about != uid else ""
        items.append(
            f'<li class="{tone_of(one.what, one.facts)} {escape(kind)}"><time title="{moment(one.at)}">'
            f"{clock_ms(one.at)}</time><i></i><div><p><b>{broken_up(cut(one.what, MOST_FACT))}</b> "
            f'{chip(kind) if kind else ""}<span class="ms-after">{shown_after(one.after)}</span></p>{about}'
            f'<div class="ms-facts">{facts}</div><div class="ms-counted">{counted}</div></div></li>'
        )
    return f'<ol class="ms-line">{"".join(items)}</ol>'


def fact_html(value: object) -> str:
    """A fact; uids of touches and messages lead to their own lives."""
    parts = [str(each) for each in value] if isinstance(value, list | tuple) else str(value).split(",")
    shown = []
    for part in parts:
        text = escape(cut(part, MOST_FACT))
        is_uid = part.startswith(UIDS) and not part.startswith(ROWS) and " " not in part
        shown.append(f'<a class="ks-link" href="{escape(trace_address(part))}">{text}</a>' if is_uid else text)
    return ", ".join(shown)


def clock_ms(at: float | None) -> str:
    try:
        return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"


def now_html(events: Sequence[TraceEvent], uid: str) -> str:
    """Where it is now, for the touch and each of its messages; how its life ended if it is nowhere."""
    here = [event for event in events if event.source == "now"]
    if not here:
        words, tone = ended(events)
        return f'<div class="ms-now {tone}"><b>{words}</b></div>'
    return "".join(
        f'<div class="ms-now"><b>{escape(cut(event.what, MOST_FACT))}</b> '
        f'<span class="mono quiet">{fact_html(event.about) if event.about != uid else ""}</span>'
        f'<div class="ms-facts">{_facts(event)}</div></div>' for event in here)


def ended(events: Sequence[TraceEvent]) -> tuple[str, str]:
    """How a life that is over ended, and the tone of it."""
    steps = {event.what.rpartition(": ")[2] for event in events if event.source in ("step", "row")}
    for step, words, tone in ENDS:
        if step in steps:
            return words, tone
    return "It waits nowhere: its life is over, or the rest of it is a job that runs now.", ""


def _facts(event: TraceEvent) -> str:
    return "".join(f"<span>{escape(name)} <b>{fact_html(value)}</b></span>" for name, value in event.facts.items())


def summary(found: Sequence[Moment]) -> str:
    times = [one.at for one in found if one.at is not None]
    if not times:
        return "Nothing is known of it, or not any more."
    calls = sum(one.what.startswith("asked") or "ms" in one.facts for one in found)
    took = shown_after(max(times) - min(times)).removeprefix("+")
    asked = f", {plural(calls, 'call')} of a provider" if calls else ""
    return f"Began {moment(min(times))}, {plural(len(found), 'step')} over {took}{asked}."


async def show_trace(running: Running, sampler: Sampler, watch: StatsWatch, uid: str) -> None:
    """Build the page for one viewer; it then moves by itself while the message does."""

    async def read(_: list[TraceEvent] | None) -> list[TraceEvent]:
        return await running.switchboard.tracer.trace(uid)

    shared = watch.share(("trace", uid), read)
    await shared.first()
    with messages_frame(running, sampler):
        ui.html('<a href="/messages">Messages</a>', sanitize=False, tag="nav").classes("ks-crumb")
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                ui.html(escape(cut(uid, 200)), sanitize=True, tag="h1").classes("mono")
                below = ui.html("", sanitize=True, tag="p")
            search_box()
        problem = problem_banner(sampler, shared)
        with ui.element("section").classes("ks-card").props('aria-label="Where it is now"') as now_card:
            now = ui.html("", sanitize=False)
        with ui.element("section").classes("ks-card").props('aria-label="Its life"') as life_card:
            life = ui.html("", sanitize=False)
        with ui.element("section").classes("ks-card hidden") as unknown:
            ui.html("<p>Nothing is known of it, or not any more: steps are kept for the setting "
                    "messaging.trace_seconds, and rows for as long as the person is.</p>", sanitize=True,
                    ).classes("ks-empty")

    def look() -> None:
        problem()
        if shared.value is None:
            return
        found = moments(shared.value)
        below.set_content(escape(summary(found)))
        for card in (now_card, life_card):
            card.classes(remove="hidden") if shared.value else card.classes(add="hidden")
        unknown.classes(add="hidden") if shared.value else unknown.classes(remove="hidden")
        for element, text in ((now, now_html(shared.value, uid)), (life, timeline_html(found, uid))):
            if element.content != text:
                element.set_content(text)

    keep_looking(look, shared)
