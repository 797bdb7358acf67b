"""What becomes of one job: each way it can end, and what is left in the keyspace."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import GiveUp, JobBook, Retry
from keystead.jobs.execution import Execution
from keystead.jobs.keys import Queue
from keystead.jobs.records import encode_record
from keystead.jobs.runner import Runner
from keystead.jobs.station import Station


async def good() -> None: ...


async def bad() -> None:
    raise ValueError("bad")


async def useless() -> None:
    raise GiveUp("useless")


async def cancels_itself() -> None:
    raise asyncio.CancelledError


async def leaves() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(("name", "attempt", "delayed", "dead"), [
    ("t.good", 0, 0, 0), ("t.bad", 0, 1, 0), ("t.bad", 1, 0, 1), ("t.useless", 0, 0, 1),
    ("t.cancels_itself", 0, 0, 1), ("t.leaves", 0, 0, 1), ("t.unknown", 0, 0, 1),
])
async def test_a_job_ends_in_exactly_one_place(
    server: Valkey, name: str, attempt: int, delayed: int, dead: int
) -> None:
    book, queue = JobBook(), Queue()
    for function in (good, bad, useless, cancels_itself, leaves):
        book.register(f"t.{function.__name__}", function, retry=Retry(tries=2))
    execution = Execution(1)
    runner = Runner(server, SystemClock(), book, execution, worker="w", allowed=None, at_most_once=False,
                    is_stopping=lambda: False)
    station = Station(server, SystemClock(), queue, "w", [])
    await queue.work.push_raw(server, encode_record(name, {}, 1.0, uid="u", attempt=attempt))
    [item] = (await station.take(1)).items
    acknowledging = asyncio.create_task(station.acknowledge())
    await runner.run(station, item)
    await station.all_acknowledged()
    acknowledging.cancel()
    execution.close()
    assert await queue.work.length(server) == 0 and await station.hands.held(server) == 0
    assert await queue.delayed.size(server) == delayed and len(await queue.work.dead_letters(server)) == dead
