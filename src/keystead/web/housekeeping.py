"""What an installation does by itself, beside answering requests: jobs, calendars, outbox and crew."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from keystead.app import Running
from keystead.jobs import ROOMS_QUEUE, Crew, FairWorker, RecurringLoop, Work, Worker, WorkerSettings, queue_names

GRACE_SECONDS = 3.0
CONCURRENCY = 10
FAIR_CONCURRENCY = 20
NEW_OBJECTS = 20_000  # between looks for garbage: what messages leave behind is mostly gone by itself


@dataclass(frozen=True, slots=True)
class _Part:
    """Something that works until it is asked to stop; asked again, it hurries."""

    work: Coroutine[None, None, None]
    stop: Callable[[], None]


class Housekeeping:
    """Runs in this process: the rooms' jobs and calendar, the crew, and the jobs of the program, tenants' included.

    Any number of processes may share one server: each job is done by one of them. A process that answers HTTP and does
    not work only brings its outbox to the server and plays the providers of the sandbox.
    """

    def __init__(self, running: Running, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._running = running
        self._grace_seconds = grace_seconds
        self._parts: list[_Part] = []

    @property
    def works(self) -> bool:
        """Whether jobs are run here, rather than by another process."""
        return self._running.crewed is not None or self._running.heard is None

    async def run(self) -> None:
        """Work until cancelled; then jobs that run may end, within the grace, or are given back.

        The calendar makes up for what was due while nobody was there.
        """
        # What is loaded by now stays for good; looking through it again and again cost a fifth of all work.
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
        self._parts = list(self._all_parts())
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(part.work) for part in self._parts]
            relay = tasks.create_task(self._running.outbox.run())
            try:
                await asyncio.Event().wait()
            finally:
                self.hurry()
                relay.cancel()
                await asyncio.wait(work, timeout=self._grace_seconds + 1)

    def hurry(self) -> None:
        """Ask everyone to stop; asked again, jobs that run are given back at once."""
        for part in self._parts:
            part.stop()

    def _all_parts(self) -> "list[_Part]":
        running, stop = self._running, asyncio.Event()
        crew: list[Work] = [running.alerting, *([running.sandbox] if running.sandbox is not None else ())]
        crew += running.crewed.crew if running.crewed is not None else ()
        parts = [_Part(Crew(*crew).work(stop), stop.set)]
        if not self.works:
            return parts
        # Totals are of the program's jobs; ours would tell a stranger that it has some.
        settings = WorkerSettings(
            queues=(ROOMS_QUEUE,), concurrency=CONCURRENCY, grace_seconds=self._grace_seconds, in_totals=False
        )
        ours = Worker(running.valkey, running.book, settings, clock=running.clock)
        loops = [RecurringLoop(running.valkey, calendar, clock=running.clock)
                 for calendar in (running.calendar, *running.program.calendars)]
        parts += [_Part(ours.run(), ours.stop), *(_Part(loop.run(), loop.stop) for loop in loops)]
        if len(running.program):
            parts += self._program_parts()
        return parts

    def _program_parts(self) -> "list[_Part]":
        running, program = self._running, self._running.program
        at_once = running.settings.program.concurrent_jobs
        settings = WorkerSettings(
            queues=program.queues(queue_names(running.settings.program.queues)), concurrency=at_once,
            grace_seconds=self._grace_seconds,
        )
        worker = Worker(running.valkey, program.book, settings, clock=running.clock)
        fair = FairWorker(
            running.valkey, program.book, clock=running.clock, concurrency=min(FAIR_CONCURRENCY, at_once)
        )
        return [_Part(worker.run(), worker.stop), _Part(fair.run(), fair.stop)]
