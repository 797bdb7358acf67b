"""How far one job is, as it tells: a bar and the lines it said, live."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from html import escape

from nicegui import ui

from keystead.engine import Valkey
from keystead.errors import KeysteadError
from keystead.jobs import ProgressBatch, ProgressEvent, watch
from keystead.jobs.models import Spawned
from keystead.web.dashboard.jobs_shown import clock_time, cut, job_address
from keystead.web.dashboard.shown import chip, shown_count

KEPT_LINES = 200
AGAIN_SECONDS = 2.0
_TONES = {"succeeded": "good", "failed": "bad", "bounce": "warn"}
_WORDS = {"progress": "", "bounce": "again later", "spawned": "began another"}


class ProgressCard:
    """Hidden until the job tells something."""

    def __init__(self, valkey: Valkey, uid: str) -> None:
        self._valkey = valkey
        self._more = asyncio.Event()
        self._more.set()
        self.uid = uid  # under which progress is told
        self._events: deque[ProgressEvent] = deque(maxlen=KEPT_LINES)
        self._missed = 0
        with ui.element("section").classes("ks-card hidden").props('aria-label="Progress"') as self._card:
            with ui.element("div").classes("ks-card-head"):
                ui.html("Progress", sanitize=True, tag="h2")
                self._now = ui.html("", sanitize=False)
            self._bar = ui.html("", sanitize=False)
            self._lines = ui.html("", sanitize=False)
        ui.timer(0, self._follow, once=True)  # ends with the page

    async def _follow(self) -> None:
        """Show what the job tells for as long as there is something to come. Each new beginning starts from nothing."""
        while True:
            self._events.clear()
            self._missed = 0
            try:
                async with aclosing(watch(self._valkey, self.uid)) as batches:
                    async for batch in batches:
                        self.add(batch)
            except KeysteadError:
                pass  # nothing is known yet, or the server is away: the banner tells
            await asyncio.sleep(AGAIN_SECONDS)
            await self._more.wait()

    def expect(self, more: bool) -> None:
        """Say whether the job may still tell something: one that ended is not asked again and again."""
        self._more.set() if more else self._more.clear()

    def add(self, batch: ProgressBatch) -> None:
        self._events += batch.events
        self._missed += batch.missed
        self._card.classes(remove="hidden")
        self._now.set_content(step_html(self._events))
        self._bar.set_content(bar_html(self._events))
        self._lines.set_content(lines_html(self._events, self._missed))


def step_html(events: Sequence[ProgressEvent]) -> str:
    """The last step in a word or number."""
    at, of = furthest(events)
    counted = f'<span class="quiet">{_number(at)} of {_number(of)}</span> ' if of else ""
    kind = events[-1].type if events else ""
    return counted + (chip(_WORDS.get(kind, kind), _TONES.get(kind, "")) if kind not in ("", "progress") else "")


def furthest(events: Sequence[ProgressEvent]) -> tuple[float, float]:
    """The last bar that was told since the job began its try, as at and of; zero and zero if there was none."""
    for event in reversed(events):
        if event.type == "started":
            break
        indicator = event.indicator
        if indicator is not None and indicator.type == "bar" and indicator.of:
            return indicator.at or 0.0, indicator.of
    return 0.0, 0.0


def bar_html(events: Sequence[ProgressEvent]) -> str:
    """How far it is; a bar that only moves when nobody knows."""
    kind = events[-1].type if events else "queued"
    at, of = furthest(events)
    share = 1.0 if kind == "succeeded" else min(1.0, max(0.0, at / of)) if of else 0.0
    tone = {"succeeded": "good", "failed": "bad"}.get(kind, "" if of else "unknown")
    return (f'<div class="ks-progress {tone}" role="progressbar" aria-valuemin="0" aria-valuemax="100" '
            f'aria-valuenow="{share * 100:.0f}"><div style="width:{share * 100:.1f}%"></div></div>')


def lines_html(events: Sequence[ProgressEvent], missed: int = 0) -> str:
    """What it told, newest first."""
    rows = "".join(
        f'<li><time>{clock_time(event.occurred_at)}</time><span class="kind {_TONES.get(event.type, "")}">'
        f"{escape(_WORDS.get(event.type, event.type))}</span><span>{escape(cut(event.message, 500))}"
        f"{_spawned(event)}</span></li>"
        for event in reversed(events)
    )
    lost = f'<li class="quiet">{shown_count(missed)} earlier lines are not kept any more</li>' if missed else ""
    return f'<ol class="ks-lines">{rows}{lost}</ol>'


def _spawned(event: ProgressEvent) -> str:
    if not isinstance(event.spawned, Spawned):
        return ""
    return (f' <a class="ks-link mono" href="{escape(job_address(event.spawned.uid))}">'
            f"{escape(cut(event.spawned.name, 80))}</a>")


def _number(value: float) -> str:
    return shown_count(int(value)) if value == int(value) else f"{value:g}"
