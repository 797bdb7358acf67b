"""One job: where it is, what it was given, how it ended, and how far it is while it runs."""

import asyncio
import contextlib
from html import escape

from nicegui import ui

from keystead.app import Running
from keystead.clock import speed_of
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError, Unavailable
from keystead.jobs import JobRecord
from keystead.jobs.dead_letters import by_uid
from keystead.jobs.inspection_views import JobFound
from keystead.web.dashboard.frame import LOOK_SECONDS, page_frame
from keystead.web.dashboard.job_facts import error_of, facts_html, is_ended, kwargs_html, name_of, result_html, state_of
from keystead.web.dashboard.job_progress import ProgressCard
from keystead.web.dashboard.jobs_list import call_off
from keystead.web.dashboard.jobs_shown import cut, state_chip
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.jobs_watch import JobsWatch
from keystead.web.sampler import Sampler

FIRST_LOOK_SECONDS = 5.0
# A job that keeps no state is looked for in lists: after a long search the rest is many times as long.
REST_FACTOR = 10
ENDED_SECONDS = 5.0

NOT_KNOWN = """<b>Nothing is known of this job.</b> One that ended well is told here while it is among the newest that
ended, and then forgotten, unless it was enqueued to be kept for a while:
<pre class="ks-code">await jobs.options(keep_seconds=3600).enqueue(greet, name="Ada")</pre>"""
NOT_SEARCHED = "<p>A queue here has more than 10,000 jobs and was searched only so far: it may still lie in there.</p>"


async def show_job(running: Running, sampler: Sampler, watch: JobsWatch, uid: str) -> None:
    """Build the page. Arguments and result are masked until someone asks to see them."""
    with page_frame(sampler, running.clock, current="/jobs"):
        view = _JobView(watch, uid, speed_of(running.clock))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await view.look()
        ui.timer(LOOK_SECONDS, view.look, immediate=False)


class _JobView:
    """The page, and what is known by now. The record is remembered: a job that ended lies nowhere any more."""

    def __init__(self, watch: JobsWatch, uid: str, speed: float) -> None:
        self._watch, self._uid, self._speed = watch, uid, speed
        self._found: JobFound | None = None
        self._record: JobRecord | None = None
        self._revealed = False
        self._unknown = "Looking for it…"
        self._due = 0.0
        ui.html('<a class="ks-crumb" href="/jobs">← Jobs</a>', sanitize=False)
        self._step_in = SteppingIn()
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                self._title = ui.html("", sanitize=True, tag="h1").classes("mono")
                self._below = ui.html("", sanitize=True, tag="p")
            with ui.element("div").classes("ks-side"):
                self._reveal = button("Reveal personal data")
                self._cancel = button("Cancel", tone="danger")
                self._retry = button("Retry", tone="accent")
                self._drop = button("Drop", tone="danger")
        with ui.element("section").classes("ks-card") as self._nothing:
            self._says = ui.html("", sanitize=False).classes("ks-empty")
        self._progress = ProgressCard(watch.valkey, uid)
        with ui.element("div").classes("ks-two") as self._cards:
            with ui.element("section").classes("ks-card").props('aria-label="Facts"'):
                with ui.element("div").classes("ks-card-head"):
                    ui.html("Facts", sanitize=True, tag="h2")
                    self._state = ui.html("", sanitize=True).props("data-state")
                self._facts = ui.html("", sanitize=False)
            with ui.element("div"):
                self._error_card, self._error = _card("Error")
                self._result_card, self._result = _card("Result")
                self._kwargs_card, self._kwargs = _card("Arguments")
        self._reveal.on("click", self._turn)
        self._cancel.on("click", self._call_off)
        self._retry.on("click", self._try_again)
        self._drop.on("click", self._forget)
        self._draw()

    def _is_live(self) -> bool:
        return self._found is not None and not is_ended(self._found)

    async def look(self, *, now: bool = False) -> None:
        """Look for the job if it is time, and show what was found."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        if began < self._due and not now:
            return
        known = [self._found.queue] if self._found is not None else None
        try:
            found = await self._watch.inspection.find(self._uid, known)
        except (Unavailable, ErrorReply):
            return  # the banner tells; or another program keeps something of its own under the name of a queue
        except KeysteadError:
            found = None  # no job can have this uid
        if found is not None and (found.state or found.view or found.ended):
            self._found = found
            if found.view is not None and found.view.record is not None:
                self._record = found.view.record
                if found.view.record.options is not None and found.view.record.options.progress:
                    self._progress.uid = found.view.record.options.progress
        elif self._found is not None:
            self._found = JobFound(self._uid, self._found.queue, None, None, found is None or found.searched_all)
        else:
            self._unknown = NOT_KNOWN if found is None else NOT_KNOWN + NOT_SEARCHED
        self._progress.expect(self._is_live())
        rest = REST_FACTOR * (loop.time() - began)
        self._due = began + max(LOOK_SECONDS / 2 if self._is_live() else ENDED_SECONDS, rest)
        self._draw()

    def _draw(self) -> None:
        found, record = self._found, self._record
        name = name_of(found, record)
        self._title.set_content(escape(cut(name or self._uid, 120)))
        self._below.set_content(f'<span class="mono uid">{escape(cut(self._uid, 120))}</span>' if name else "")
        _show(self._nothing, found is None)
        _show(self._cards, found is not None)
        if found is None:
            self._says.set_content(self._unknown)
            for each in (self._reveal, self._cancel, self._retry, self._drop):
                _show(each, False)
            return
        state = state_of(found)
        self._state.set_content(state_chip(state))
        self._facts.set_content(facts_html(found, record, self._watch.inspection.now(), self._speed))
        error, result = error_of(found), result_html(found, revealed=self._revealed)
        self._error.set_content(f'<pre class="ks-value ks-error">{escape(cut(error, 6000))}</pre>')
        self._result.set_content(result)
        self._kwargs.set_content(kwargs_html(record, revealed=self._revealed))
        _show(self._error_card, bool(error))
        _show(self._result_card, bool(result))
        _show(self._reveal, record is not None or bool(result))
        _show(self._cancel, self._is_live())
        is_dead = found.view is not None and found.view.place == "dead"
        _show(self._retry, is_dead)
        _show(self._drop, is_dead)

    def _turn(self) -> None:
        self._revealed = not self._revealed
        self._reveal.set_content("Hide personal data" if self._revealed else "Reveal personal data")
        self._draw()

    async def _call_off(self) -> None:
        await call_off(self._watch, self._step_in, self._uid)
        await self.look(now=True)

    async def _try_again(self) -> None:
        await self._step_in.tried(self._retried())
        await self.look(now=True)

    async def _forget(self) -> None:
        if await self._step_in.confirmed("Drop this job?", "It is forgotten for good, with its arguments.", "Drop it"):
            await self._step_in.tried(self._dropped())
            await self.look(now=True)

    async def _retried(self) -> str:
        assert self._found is not None
        moved = await self._watch.inspection.dead_letters(self._found.queue).retry(by_uid([self._uid]))
        return "Queued again, with all its tries." if moved else "It is not among the failed jobs any more."

    async def _dropped(self) -> str:
        assert self._found is not None
        dropped = await self._watch.inspection.dead_letters(self._found.queue).drop(by_uid([self._uid]))
        return "Dropped." if dropped else "It is not among the failed jobs any more."


def _card(title: str) -> tuple[ui.element, ui.html]:
    with ui.element("section").classes("ks-card").props(f'aria-label="{title}"') as card:
        ui.html(f'<div class="ks-card-head"><h2>{title}</h2></div>', sanitize=False)
        return card, ui.html("", sanitize=False)


def _show(element: ui.element, shown: bool) -> None:
    element.classes(remove="hidden") if shown else element.classes(add="hidden")
