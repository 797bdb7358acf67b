"""What an installation does by itself, beside answering requests: the rooms' jobs, calendar, outbox and crew."""

import asyncio
import gc

from keystead.app import Running
from keystead.jobs import ROOMS_QUEUE, Crew, RecurringLoop, Worker, WorkerSettings

GRACE_SECONDS = 3.0
CONCURRENCY = 10
NEW_OBJECTS = 20_000  # between looks for garbage: what messages leave behind is mostly gone by itself


class Housekeeping:
    """Runs in this process. Any number of processes may share one server: each job is done by one of them."""

    def __init__(self, running: Running) -> None:
        self._running = running

    async def run(self) -> None:
        """Work until cancelled; then jobs that run may end, for a moment, or are given back.

        The calendar makes up for what was due while nobody was there.
        """
        running = self._running
        # What is loaded by now stays for good; looking through it again and again cost a fifth of all work.
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
        # Totals are of the program's jobs; ours would tell a stranger that it has some.
        settings = WorkerSettings(
            queues=(ROOMS_QUEUE,), concurrency=CONCURRENCY, grace_seconds=GRACE_SECONDS, in_totals=False
        )
        worker = Worker(running.valkey, running.book, settings, clock=running.clock)
        loop = RecurringLoop(running.valkey, running.calendar, clock=running.clock)
        stop, crew = asyncio.Event(), Crew(*(running.crewed.crew if running.crewed is not None else ()))
        async with asyncio.TaskGroup() as parts:
            work = [parts.create_task(part) for part in (worker.run(), loop.run(), crew.work(stop))]
            relay = parts.create_task(running.outbox.run())
            try:
                await asyncio.Event().wait()
            finally:
                stop.set()
                worker.stop()
                loop.stop()
                relay.cancel()
                await asyncio.wait(work, timeout=GRACE_SECONDS + 1)
