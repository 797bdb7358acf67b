"""What becomes of one job: each way it can end, and what is left in the keyspace."""

import asyncio
import os
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import GiveUp, JobBook, JobRef, Jobs, Rate, Retry, RetryLater, decode_data_raw
from keystead.jobs.execution import Execution
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobOptions, JobRecord
from keystead.jobs.records import encode_record
from keystead.jobs.runner import Runner
from keystead.jobs.station import Station
from keystead.patterns.worklist_items import DeadLetter


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


async def huge() -> str:
    return os.urandom(300_000).hex()


async def never() -> None:
    raise RetryLater(float("nan"))


class Room:
    """A station and a runner, without the loop that a worker has around them."""

    def __init__(self, server: Valkey, **how) -> None:
        self.server, self.queue, self.book = server, Queue(), JobBook()
        for function in (good, bad, useless, huge, never):
            self.book.register(f"t.{function.__name__}", function, retry=Retry(tries=2))
        self.book.register("t.limited", good, rate=Rate(1, 50_000.0))
        self.execution = Execution(1)
        self.station = Station(server, SystemClock(), self.queue, "w", [])
        self.runner = Runner(server, SystemClock(), self.book, self.execution, worker="w", allowed=None,
                             is_stopping=lambda: False, **{"at_most_once": False, **how})

    async def run(self, raw: bytes) -> None:
        """Take it and run it, as a worker would."""
        await self.queue.work.push_raw(self.server, raw)
        [item] = (await self.station.take(1)).items
        await self.runner.run(self.station, item)
        await self.station.all_acknowledged()
        assert await self.station.hands.held(self.server) == 0, "it was settled one way or the other"

    async def dead(self) -> list[DeadLetter]:
        return await self.queue.work.dead_letters(self.server)


@pytest_asyncio.fixture
async def room(server: Valkey) -> AsyncIterator[Room]:
    room = Room(server)
    acknowledging = asyncio.create_task(room.station.acknowledge())
    yield room
    acknowledging.cancel()
    room.execution.close()


@pytest.mark.parametrize("fields", [
    {"uid": "a:b{c}\n", "options": {"keep_seconds": 5}},
    {"uid": "", "options": {"keep_seconds": 5}},
    {"uid": "k", "options": {"progress": "x:\ny"}},
    {"uid": "k", "options": {"done": "x:\ny"}},
    {"uid": "k", "options": {"batch": "a\nb"}},
    {"uid": "k", "options": {"unique": "a\nb"}},
    {"uid": "k", "options": {"on_success": {"name": "x", "kwargs": {"data_raw": 1}}}},
])
async def test_options_of_another_program_that_cannot_be_used_are_a_dead_letter(room: Room, fields) -> None:
    await room.run(msgspec.json.encode({"name": "t.good", "kwargs": {}, "queued_at": 1.0, **fields}))
    [letter] = await room.dead()
    assert "options cannot be used" in letter.error


@pytest.mark.parametrize("fields", [
    {"uid": "a:b{c}\n"}, {"uid": "k", "options": {"keep_seconds": 1e300}},
    {"uid": "k", "options": {"keep_seconds": -1}}, {"uid": "k", "attempt": 10**30},
    {"uid": "k", "options": {"timeout_seconds": -1}},
])
@pytest.mark.parametrize("name", ["t.good", "t.bad", "t.never", "t.unknown"])
async def test_no_record_stops_the_worker(room: Room, name: str, fields) -> None:
    await room.run(msgspec.json.encode({"name": name, "kwargs": {}, "queued_at": 1.0, **fields}))


async def test_a_result_that_is_too_large_to_be_told_is_left_out(room: Room) -> None:
    options = JobOptions(keep_seconds=60, on_success=JobRef("t.good"))
    await room.run(encode_record("t.huge", {}, 1.0, uid="u", options=options))
    [raw] = await room.server.run(("LRANGE", room.queue.work.queue.name(room.server.layout), 0, -1), list)
    outcome = decode_data_raw(msgspec.json.decode(raw, type=JobRecord).kwargs["data_raw"])
    assert (outcome["status"], outcome["result"]) == ("succeeded", "") and await room.dead() == []
    state = await room.queue.job("u").get(room.server)
    assert state is not None and len(state.result) == 600_002


async def test_what_cannot_be_settled_is_at_least_seen(room: Room) -> None:
    """The state is of a wrong type: a server says so in an error reply."""
    await room.server.run(("SET", room.queue.job("u").name(room.server.layout), "x"), bool)
    await room.run(encode_record("t.good", {}, 1.0, uid="u", options=JobOptions(keep_seconds=60)))
    [letter] = await room.dead()
    assert "could not be settled" in letter.error


async def test_a_failure_before_the_run_is_followed_as_any_other(room: Room) -> None:
    options = JobOptions(on_failure=JobRef("t.good", {"x": 1}))
    await room.run(encode_record("t.unknown", {}, 1.0, uid="u", options=options))
    assert await room.queue.work.length(room.server) == 1 and len(await room.dead()) == 1


async def test_a_start_that_was_not_reserved_is_asked_for_again(room: Room) -> None:
    """All starts of a day are taken: it comes back in an hour, without one."""
    for n in range(4):
        await room.run(encode_record("t.limited", {"n": n} if n else {}, 1.0, uid=f"u{n}"))
    found = await room.queue.delayed.range(room.server, 0, -1)
    assert sorted(bool(record.slot) for record, _ in found) == [False, False, True]


async def test_a_wish_that_was_taken_back_does_not_count(room: Room) -> None:
    """Heard of once; but the job was a dead letter by then, and is tried again."""
    room.runner.cancelled.add("u")
    await room.run(encode_record("t.good", {}, 1.0, uid="u"))
    assert room.runner.tally.done == 1 and room.runner.cancelled == set()


@pytest.mark.parametrize("called_off", [True, False])
@pytest.mark.parametrize("turns", range(1, 12))
async def test_a_cancellation_at_any_await_leaves_nothing_behind(room: Room, turns: int, called_off: bool) -> None:
    """It comes while the state is written, the parents are asked for, the function runs, or the end is settled."""
    jobs, server, queue = Jobs(room.server), room.server, room.queue
    parent = await jobs.options(keep_seconds=60).enqueue("t.good")
    await room.runner.run(room.station, (await room.station.take(1)).items[0])
    handle = await jobs.options(after=[parent], unique="x").enqueue("t.good")
    [item] = (await room.station.take(1)).items
    task = asyncio.create_task(room.runner.run(room.station, item))
    for _ in range(turns):
        await asyncio.sleep(0)
    if called_off:
        room.runner.cancelled.add(handle.uid)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await room.station.hands.held(server) == 0
    state = await handle.state()
    assert state is not None
    if state.status in ("succeeded", "cancelled"):
        assert await queue.work.length(server) == 0 and await queue.unique("x").get(server) is None
    else:
        assert not called_off and await queue.work.length(server) == 1
        assert await queue.unique("x").get(server) == handle.uid


async def test_at_most_once_does_not_run_what_another_took_over(server: Valkey) -> None:
    ran: list[int] = []

    async def note() -> None:
        ran.append(1)

    room = Room(server, at_most_once=True)
    room.book.register("t.note", note)
    await room.queue.work.push_raw(server, encode_record("t.note", {}, 1.0, uid="u"))
    [item] = (await room.station.take(1)).items
    assert (await room.station.hands.finish(server, [item])).count == 1  # as if adopted
    await room.runner.run(room.station, item)
    assert ran == []
    room.execution.close()


async def test_at_most_once_still_ends_what_hangs_on_a_job(server: Valkey) -> None:
    """Its state, its unique key and its batch; only it is never run again."""
    room = Room(server, at_most_once=True)
    jobs = Jobs(server)
    kept = await jobs.options(keep_seconds=60, unique="x").enqueue("t.good")
    batch = await jobs.enqueue_batch([("t.bad", {}), ("t.good", {})], then=JobRef("t.good"))
    for item in (await room.station.take(3)).items:
        await room.runner.run(room.station, item)
    state, progress = await kept.state(), await batch.progress()
    assert state is not None and state.status == "succeeded" and await room.queue.unique("x").get(server) is None
    assert (progress.left, progress.failed) == (0, 1) and await room.queue.work.length(server) == 1
    assert await room.dead() == [] and await room.station.hands.held(server) == 0
    room.execution.close()
