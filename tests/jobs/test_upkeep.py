"""Upkeep: due jobs are queued, cancellations are learnt, workers are seen."""

import asyncio

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.engine.failures import ServerAway
from keystead.jobs import JobBook, Jobs, Worker
from keystead.jobs.endings import Ending
from keystead.jobs.keys import CONTROL, OPEN_SECONDS, TOTALS, WORKER, WORKERS, Queue
from keystead.jobs.models import Control, JobRecord
from keystead.jobs.upkeep import Upkeep

from .beside import at_work, until


async def nothing() -> None: ...


def book() -> JobBook:
    book = JobBook()
    book.register("t.nothing", nothing)
    return book


async def test_a_worker_is_seen_while_it_works_and_gone_when_it_left(server: Valkey) -> None:
    async with at_work(server, book(), concurrency=7) as worker:
        await Jobs(server).enqueue("t.nothing")
        await until(lambda: TOTALS.at().get(server, "done"))
        state = await WORKER.at(worker.name).get(server)
        assert state is not None and (state.concurrency, state.queues, state.stopping) == (7, "hot", False)
        assert [name for name, _ in await WORKERS.at().range(server)] == [worker.name]
    assert await WORKER.at(worker.name).get(server) is None and await WORKERS.at().size(server) == 0
    assert await TOTALS.at().get(server, "done") == 1


async def test_a_report_that_nobody_waits_for_any_more_counts_once(server: Valkey) -> None:
    worker = Worker(server, book())
    upkeep = Upkeep(server, SystemClock(), worker, [])
    worker.tally.done = 1
    reporting = asyncio.create_task(upkeep.report())
    await until(lambda: TOTALS.at().get(server, "done"))  # by its own connection: the answer may not be read yet
    reporting.cancel()
    for _ in range(20):  # and at each of the first steps on its way
        worker.tally.done += 1
        reporting = asyncio.create_task(upkeep.report())
        for _ in range(worker.tally.done):
            await asyncio.sleep(0)
        reporting.cancel()
        await asyncio.wait([reporting])
    await upkeep.leave()
    assert await TOTALS.at().get(server, "done") == worker.tally.done == 21


async def test_thousands_that_are_due_at_once_are_queued(server: Valkey) -> None:
    ran = 0

    async def count(n: int) -> None:
        nonlocal ran
        ran += 1

    jobs, numbers = Jobs(server), book()
    numbers.register("t.count", count)
    at = SystemClock().now() + 1
    await asyncio.gather(*(jobs.options(at=at).enqueue("t.count", n=n) for n in range(2500)))
    assert await Queue().delayed.size(server) == 2500
    async with at_work(server, numbers):
        await until(lambda: ran == 2500)
    assert await Queue().delayed.size(server) == 0


async def test_a_worker_forgets_what_it_need_not_call_off_any_more(server: Valkey) -> None:
    """What was heard of, and what was written down so long ago that nobody waits for it."""
    now = SystemClock().now()
    await Queue().cancelled.add(server, "old", now - OPEN_SECONDS - 60)
    await Queue().cancelled.add(server, "known", now)
    async def heard() -> bool:
        await CONTROL.at().publish(server, Control(cancel="elsewhere"))
        return worker._runner.cancelled == {"known", "elsewhere"}

    async with at_work(server, book()) as worker:
        await until(heard)
        await until(lambda: worker._runner.cancelled == {"known"})
        await Queue().cancelled.remove(server, "known")
        await until(lambda: worker._runner.cancelled == set())
    assert await Queue().cancelled.size(server) == 0


async def test_whoever_leaves_waits_once_for_a_server_that_is_away() -> None:
    class Away:
        asked = 0

        def pipeline(self, transaction: bool = True) -> None:
            self.asked += 1
            raise ServerAway("no server")

    away = Away()
    worker = Worker(away, book())
    worker.ended.note(JobRecord("t.nothing", {}, 0.0, "u1"), "", Ending("succeeded"))
    await Upkeep(away, SystemClock(), worker, []).leave()
    assert away.asked == 1
