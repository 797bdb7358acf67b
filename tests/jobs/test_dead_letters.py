"""Dead letters: grouped by error, tried again with all their tries, dropped; exactly those that were chosen."""

import asyncio
from collections import Counter

import msgspec
import pytest

from keystead.engine import Valkey
from keystead.jobs import JobBook, JobRef, Jobs, job
from keystead.jobs.dead_letters import DeadLetters, by_error, by_uid, every, group_of
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.records import changed

from .test_inspection import bury


@job(name="runners.greet")
async def greet(name: str) -> None: ...


@pytest.fixture
def jobs(server: Valkey) -> Jobs:
    return Jobs(server, JobBook.of(greet))


@pytest.fixture
def letters(server: Valkey) -> DeadLetters:
    return DeadLetters(server, Queue())


async def queued(server: Valkey) -> list[JobRecord]:
    raws = await server.run(("LRANGE", Queue().work.queue.name(server.layout), 0, -1), list)
    return [msgspec.json.decode(raw, type=JobRecord) for raw in raws]


async def names(letters: DeadLetters) -> list[str]:
    return [view.record.kwargs["name"] for view in await letters.page(0, 10_000)]


async def kill(server: Valkey, jobs: Jobs, name: str, error: str, now: float = 1000.0) -> str:
    uid: str = (await jobs.enqueue(greet, name=name)).uid
    await bury(server, error, now=now)
    return uid


def test_a_group_is_what_errors_of_one_kind_share() -> None:
    assert group_of("ConnectionError: no answer from 10.0.0.7:443 in 5 s") == "ConnectionError: no answer from … in … s"
    assert group_of("KeyError: 'ada'") == group_of('KeyError: "bob"') == "KeyError: …"
    assert group_of("ValueError: one two three four five six seven eight") == \
        group_of("ValueError: one two three four five six seven nine")
    assert group_of("") == ""


async def test_letters_are_grouped_by_error(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    for number in range(3):
        newest = await kill(server, jobs, f"t{number}", f"TimeoutError: after {number} s", 1000.0 + number)
    await kill(server, jobs, "k", "KeyError: 'x'", 900.0)
    timeouts, missing = await letters.groups()
    assert (timeouts.error, timeouts.count, timeouts.first_at, timeouts.last_at) == \
        ("TimeoutError: after … s", 3, 1000.0, 1002.0)
    assert timeouts.names == {"runners.greet": 3} and timeouts.sample.uid == newest and timeouts.queue == "hot"
    assert (missing.error, missing.count) == ("KeyError: …", 1)


async def test_chosen_letters_are_queued_again(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    a, b, c = [await kill(server, jobs, name, f"{error} broke") for name, error in
               (("a", "this"), ("b", "that"), ("c", "this"))]
    assert await letters.retry(by_uid([b])) == 1
    assert [record.uid for record in await queued(server)] == [b] and await names(letters) == ["a", "c"]
    assert await letters.retry(by_error("this broke")) == 2
    assert [record.uid for record in await queued(server)] == [b, a, c] and await names(letters) == []
    assert await letters.retry(every) == 0


async def test_a_group_is_chosen_by_the_text_it_is_shown_with(server: Valkey, jobs: Jobs, letters) -> None:
    for number in range(3):
        await kill(server, jobs, str(number), f"TimeoutError: after {number} s")
    await kill(server, jobs, "other", "TimeoutErrors of another kind")
    [group, _] = await letters.groups()
    assert await letters.retry(by_error(group.error)) == 3
    assert await names(letters) == ["other"]


async def test_a_job_gets_all_its_tries_again_and_keeps_the_rest(server: Valkey, jobs: Jobs, letters) -> None:
    await jobs.enqueue(greet, name="a")
    name = Queue().work.queue.name(server.layout)
    [raw] = await server.run(("LRANGE", name, 0, -1), list)
    foreign = msgspec.json.encode({**msgspec.json.decode(raw), "theirs": [1, 2]})
    await server.run(("LSET", name, 0, changed(foreign, attempt=5, slot=123.5)), bool)
    await bury(server, "it broke")
    assert await letters.retry(every) == 1
    [found] = await server.run(("LRANGE", name, 0, -1), list)
    assert msgspec.json.decode(found) == {**msgspec.json.decode(foreign), "attempt": 0, "slot": 0.0}


async def test_what_is_no_job_can_be_tried_again_or_dropped(server: Valkey, letters: DeadLetters) -> None:
    dead, queue = Queue().work.dead.name(server.layout), Queue().work.queue.name(server.layout)
    await server.run(("RPUSH", dead, b"not even a letter", b'{"attempts":1,"error":"e","dead_at":1.0}\n\xff'), int)
    assert [group.error for group in await letters.groups()] == ["e", "no dead letter: a dead letter begins with"]
    assert await letters.retry(by_error("e")) == 1
    assert await server.run(("LRANGE", queue, 0, -1), list) == [b"\xff"]
    assert await letters.drop(every) == 1 and await server.run(("LLEN", dead), int) == 0


async def test_a_state_that_is_kept_begins_anew(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    handle = await jobs.options(keep_seconds=60, unique="ada").enqueue(greet, name="a")
    state, unique = Queue().job(handle.uid), Queue().unique("ada")
    await bury(server, "it broke")
    await state.update(server, status="failed", error="it broke", attempts=5, finished_at=1.0)
    await unique.delete(server)
    before = await state.get(server)
    await letters.retry(every)
    after = await state.get(server)
    assert before is not None and after is not None
    assert (after.status, after.attempts, after.error, after.finished_at) == ("queued", 0, "", None)
    assert (after.name, after.queued_at) == (before.name, before.queued_at)
    left = await state.remaining_seconds(server)
    assert left is not None and left > 86400
    again = await jobs.options(unique="ada").enqueue(greet, name="a")
    assert not again.is_new and again.uid == handle.uid


async def test_a_state_that_was_forgotten_is_written_whole(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    handle = await jobs.options(keep_seconds=60).enqueue(greet, name="a")
    await bury(server, "it broke")
    await Queue().job(handle.uid).delete(server)
    await letters.retry(every)
    state = await handle.state()
    assert state is not None and (state.name, state.status) == ("runners.greet", "queued")


async def test_a_wish_to_call_it_off_from_before_does_not_count(server: Valkey, jobs: Jobs, letters) -> None:
    handle = await jobs.enqueue(greet, name="a")
    await bury(server, "it broke")
    await handle.cancel()
    await letters.retry(every)
    assert await Queue().cancelled.range(server) == []


async def test_a_batch_counts_a_job_that_is_tried_again(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    batch = await jobs.enqueue_batch([(greet, {"name": str(n)}) for n in range(2)], then=JobRef("runners.greet"))
    await bury(server, "it broke")
    place = Queue().batch(batch.uid)
    await place.set_many(server, {"left": b"1", "failed": b"1"})
    await letters.retry(every)
    progress = await batch.progress()
    assert (progress.left, progress.failed) == (2, 0)


async def test_a_batch_that_has_ended_stays_so(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    batch = await jobs.enqueue_batch([(greet, {"name": "a"})])
    await bury(server, "it broke")
    await Queue().batch(batch.uid).set_many(server, {"left": b"0", "failed": b"1"})
    await letters.retry(every)
    progress = await batch.progress()
    assert (progress.left, progress.failed) == (0, 1)


async def test_many_letters_in_steps(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    await jobs.enqueue_many(greet, ({"name": str(n)} for n in range(250)))
    for error in ("odd", "even", "odd", "even", "odd"):
        await bury(server, error, most=50)
    assert await letters.retry(by_error("even")) == 100
    assert [record.kwargs["name"] for record in await queued(server)] == \
        [str(n) for n in (*range(50, 100), *range(150, 200))]
    assert await names(letters) == [str(n) for n in (*range(50), *range(100, 150), *range(200, 250))]
    assert await letters.drop(every) == 150 and await names(letters) == []


async def test_equal_letters_are_taken_one_for_one(server: Valkey, letters: DeadLetters) -> None:
    raw = b'{"attempts":1,"error":"e","dead_at":1.0}\n{"name":"a.b","kwargs":{},"queued_at":1.0}'
    await server.run(("RPUSH", Queue().work.dead.name(server.layout), *[raw] * 3), int)
    assert await letters.retry(every) == 3
    assert len(await queued(server)) == 3


async def test_two_who_retry_at_once_double_nothing(server: Valkey, jobs: Jobs, letters: DeadLetters) -> None:
    await jobs.enqueue_many(greet, ({"name": str(n)} for n in range(600)))
    await bury(server, "it broke", most=600)
    moved = await asyncio.gather(letters.retry(every), letters.retry(every), letters.drop(by_error("another")))
    # Places shift under each other's steps, so that one round may leave letters; none is lost or doubled.
    rest = await letters.retry(every)
    assert sum(moved) + rest == 600
    assert Counter(record.kwargs["name"] for record in await queued(server)) == Counter(str(n) for n in range(600))
    assert await names(letters) == []
