"""The worker: jobs run, fail, come back, end; and nothing is left behind that nobody declared."""

import asyncio
import threading
import time

import msgspec
import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.jobs import (
    HIGH_RESOURCE_COST,
    LOW_RESOURCE_COST,
    NEVER,
    GiveUp,
    Inspection,
    Job,
    JobBook,
    JobRef,
    Jobs,
    Rate,
    Retry,
    RetryLater,
    Worker,
    WorkerSettings,
    current_job,
    decode_data_raw,
)
from keystead.jobs.keys import PROGRESS_EVENTS, Queue

from .beside import at_work, left_keys, until

QUICK = Retry(tries=3, first_seconds=0.01, jitter=0)
# What stays when every job has ended.
RESIDUE = {"jobs:totals", "jobs:hot:workers", "jobs:processing:{worker}:alive", "jobs:workers", "jobs:worker:{worker}",
           "jobs:queues", "jobs:ended:{status}"}


class Log:
    """Jobs that note what they did."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.gate = asyncio.Event()

    async def note(self, n: int) -> int:
        self.seen.append(n)
        return n * 2

    def in_thread(self, n: int) -> None:
        self.seen.append((n, threading.current_thread() is threading.main_thread(), current_job().attempt))

    async def hold(self, n: int) -> None:
        self.seen.append(n)
        await self.gate.wait()

    async def fail(self, n: int) -> None:
        self.seen.append((n, current_job().attempt))
        raise ValueError(f"no {n}")

    async def fail_once(self, n: int) -> str:
        self.seen.append((n, current_job().attempt))
        if current_job().attempt == 1:
            raise ValueError("not yet")
        return "at last"

    async def told(self, **what: object) -> None:
        self.seen.append(what)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def book(log: Log) -> JobBook:
    book = JobBook()
    book.register("t.note", log.note)
    book.register("t.thread", log.in_thread)
    book.register("t.hold", log.hold)
    book.register("t.fail", log.fail, retry=QUICK)
    book.register("t.fail_once", log.fail_once, retry=QUICK)
    book.register("t.told", log.told)
    return book


async def dead(server: Valkey, queue: str = "") -> list[tuple[str, int]]:
    return [(letter.error, letter.attempts) for letter in await Queue(queue).work.dead_letters(server)]


async def test_jobs_run_once_each_and_leave_nothing(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).enqueue_many("t.note", ({"n": n} for n in range(500)))
    async with at_work(server, book) as worker:
        await until(lambda: len(log.seen) == 500)
    assert sorted(log.seen) == list(range(500)) and worker.tally.done == 500
    assert await left_keys(server) <= RESIDUE
    assert await Queue().work.worker(worker.name).held(server) == 0


async def test_a_job_that_comes_later_is_served_at_once(server: Valkey, book: JobBook, log: Log) -> None:
    """An idle worker waits on the list itself."""
    jobs = Jobs(server, book)
    async with at_work(server, book):
        await asyncio.sleep(0.3)
        for n in range(5):
            await jobs.enqueue("t.note", n=n)
            await until(lambda n=n: len(log.seen) == n + 1)
    assert log.seen == [0, 1, 2, 3, 4]


async def test_a_record_of_another_program_is_served(server: Valkey, book: JobBook, log: Log) -> None:
    name = Queue().work.queue.name(server.layout)
    raw = msgspec.json.encode({"name": "t.note", "kwargs": {"n": 7}, "queued_at": 1.5, "trace": "x"})
    await server.run(("RPUSH", name, raw, raw), int)
    async with at_work(server, book):
        await until(lambda: log.seen == [7, 7])
    assert await left_keys(server) <= RESIDUE


async def test_a_function_that_is_not_async_runs_in_a_thread(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).enqueue("t.thread", n=1)
    async with at_work(server, book):
        await until(lambda: log.seen)
    assert log.seen == [(1, False, 1)]


async def test_a_failed_job_is_tried_again_and_then_given_up(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).enqueue("t.fail", n=1)
    async with at_work(server, book) as worker:
        await until(lambda: dead(server))
    assert log.seen == [(1, 1), (1, 2), (1, 3)]
    assert await dead(server) == [("ValueError: no 1", 3)]
    assert (worker.tally.failed, worker.tally.retried) == (1, 2)
    [letter] = await Queue().work.dead_letters(server)
    assert msgspec.json.decode(letter.raw)["kwargs"] == {"n": 1}


async def test_unknown_fields_survive_a_retry(server: Valkey, book: JobBook, log: Log) -> None:
    name = Queue().work.queue.name(server.layout)
    raw = msgspec.json.encode({"name": "t.fail", "kwargs": {"n": 1}, "queued_at": 1.5, "trace": [1, {"a": None}]})
    await server.run(("RPUSH", name, raw), int)
    async with at_work(server, book):
        await until(lambda: dead(server))
    [letter] = await Queue().work.dead_letters(server)
    assert msgspec.json.decode(letter.raw)["trace"] == [1, {"a": None}]


async def test_a_job_can_say_when_to_come_back_or_give_up(server: Valkey, log: Log) -> None:
    async def later(n: int) -> None:
        log.seen.append(current_job().attempt)
        if len(log.seen) < 3:
            raise RetryLater(0.01, counts=len(log.seen) == 2)

    async def useless() -> None:
        raise GiveUp("the user is gone")

    book = JobBook()
    book.register("t.later", later, retry=NEVER)
    book.register("t.useless", useless)
    jobs = Jobs(server, book)
    await jobs.enqueue("t.later", n=1)
    await jobs.enqueue("t.useless")
    async with at_work(server, book):
        await until(lambda: len(log.seen) == 3)
        await until(lambda: dead(server))
    assert log.seen == [1, 1, 2] and await dead(server) == [("GiveUp: the user is gone", 1)]


@pytest.mark.parametrize(("raw", "reason"), [
    (b'{"name":"os.system","kwargs":{"command":"true"},"queued_at":1}', "no job is named os.system"),
    (b'{"name":"t.note","kwargs":[1],"queued_at":1}', "does not decode"),
    (b'{"name":"t.note","kwargs":{"n":1}', "does not decode"),
    (b"\xff\x00 not json", "does not decode"),
    (b'{"name":"t.note","kwargs":{"m":1},"queued_at":1}', "wrong arguments"),
    (b'{"name":"t.note","kwargs":{"n":"' + b"x" * 3_000_000 + b'"},"queued_at":1}', "at most 1,048,576 are run"),
])
async def test_bad_input_is_a_dead_letter_and_the_worker_goes_on(
    server: Valkey, book: JobBook, log: Log, raw: bytes, reason: str
) -> None:
    name = Queue().work.queue.name(server.layout)
    async with at_work(server, book):
        await server.run(("RPUSH", name, raw), int)  # to an idle worker
        await until(lambda: dead(server))
        await server.run(("RPUSH", name, *[raw] * 3), int)
        await Jobs(server, book).enqueue("t.note", n=1)
        await until(lambda: log.seen == [1])
        await until(lambda: _count(server, 4))
    letters = await Queue().work.dead_letters(server)
    assert all(reason in letter.error for letter in letters) and [letter.raw for letter in letters] == [raw] * 4


async def _count(server: Valkey, count: int) -> bool:
    return len(await dead(server)) == count


async def test_a_record_of_fifty_megabytes_hurts_nobody(valkey: Valkey, book: JobBook, log: Log) -> None:
    raw = b'{"name":"t.note","kwargs":{"n":"' + b"x" * 50_000_000 + b'"},"queued_at":1}'
    await valkey.rpush("jobs:hot", raw)
    await Jobs(valkey, book).enqueue("t.note", n=1)
    async with at_work(valkey, book):
        await until(lambda: log.seen == [1])
        await until(lambda: dead(valkey))
    [(error, _)] = await dead(valkey)
    assert "50,000,0" in error


async def test_a_job_of_a_category_that_is_not_ours_is_sorted_unchanged(server: Valkey, log: Log) -> None:
    book = JobBook()
    book.register("t.heavy", log.note, category=HIGH_RESOURCE_COST)
    book.register("t.light", log.note)
    name = Queue().work.queue.name(server.layout)
    raw = b'{"name":"t.heavy",  "kwargs":{"n":1},"queued_at":1,"x":2}'
    await server.run(("RPUSH", name, raw, raw), int)
    await Jobs(server, book).enqueue("t.light", n=2)
    heavy = Queue().category(1).name(server.layout)
    async with at_work(server, book, categories=[LOW_RESOURCE_COST]):
        await until(lambda: log.seen == [2])
        await until(lambda: server.run(("LLEN", heavy), lambda length: length == 2))
    assert await server.run(("LRANGE", heavy, 0, -1), list) == [raw, raw]
    async with at_work(server, book):
        await until(lambda: log.seen == [2, 1, 1])


async def test_a_worker_without_categories_serves_the_main_list(server: Valkey, log: Log) -> None:
    book = JobBook()
    book.register("t.heavy", log.note, category=HIGH_RESOURCE_COST)
    raw = b'{"name":"t.heavy","kwargs":{"n":1},"queued_at":1}'
    await server.run(("RPUSH", Queue().work.queue.name(server.layout), raw), int)
    async with at_work(server, book, categories=[]):
        await until(lambda: log.seen == [1])


async def test_sorted_work_is_served_first(server: Valkey, log: Log) -> None:
    book = JobBook()
    book.register("t.urgent", log.note, category=HIGH_RESOURCE_COST)
    book.register("t.note", log.note)
    jobs = Jobs(server, book)
    await jobs.enqueue_many("t.note", ({"n": n} for n in range(20)))
    await jobs.enqueue("t.urgent", n=100)
    async with at_work(server, book, concurrency=1):
        await until(lambda: len(log.seen) == 21)
    assert log.seen == [100, *range(20)]


async def test_never_more_jobs_at_once_than_allowed(server: Valkey, log: Log) -> None:
    now, most = 0, 0

    async def busy(n: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        log.seen.append(n)

    book = JobBook()
    book.register("t.busy", busy)
    await Jobs(server, book).enqueue_many("t.busy", ({"n": n} for n in range(60)))
    async with at_work(server, book, concurrency=7):
        await until(lambda: len(log.seen) == 60)
    assert most == 7


async def test_a_try_that_takes_too_long_fails(server: Valkey, log: Log) -> None:
    book = JobBook()
    book.register("t.hold", log.hold, timeout_seconds=0.05, retry=NEVER)
    await Jobs(server, book).enqueue("t.hold", n=1)
    async with at_work(server, book):
        await until(lambda: dead(server))
    assert await dead(server) == [("TooLong: took longer than 0.05 s", 1)]


async def test_state_and_result_can_be_read_after_the_end(server: Valkey, book: JobBook) -> None:
    jobs = Jobs(server, book).options(keep_seconds=60)
    good, bad = await jobs.enqueue("t.note", n=21), await jobs.enqueue("t.fail", n=1)
    again = await jobs.enqueue("t.fail_once", n=1)
    async with at_work(server, book) as worker:
        state = await good.wait(30)
        assert (state.status, state.result, state.attempts, state.worker) == ("succeeded", "42", 1, worker.name)
        state = await bad.wait(30)
        assert (state.status, state.error, state.attempts) == ("failed", "ValueError: no 1", 3)
        state = await again.wait(30)
        assert (state.status, state.result, state.attempts, state.error) == ("succeeded", '"at last"', 2, "")
    assert 0 < await Queue().job(good.uid).remaining_seconds(server) <= 60


async def test_the_key_of_a_unique_job_is_free_again_after_its_end(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book).options(unique="one", keep_seconds=60)
    first = await jobs.enqueue("t.note", n=1)
    async with at_work(server, book):
        await first.wait(30)
        second = await jobs.enqueue("t.note", n=2)
        assert second.is_new
        await second.wait(30)
    assert log.seen == [1, 2]


async def test_jobs_run_after_those_they_wait_for(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book)
    keep = jobs.options(keep_seconds=60)
    first, second = await keep.enqueue("t.hold", n=1), await keep.enqueue("t.note", n=2)
    third = await jobs.options(after=[first, second]).enqueue("t.note", n=3)
    async with at_work(server, book):
        await second.wait(30)
        assert 3 not in log.seen
        log.gate.set()
        assert (await third.wait(30)).status == "succeeded"
        late = await jobs.options(after=[first, second]).enqueue("t.note", n=4)
        assert (await late.wait(30)).status == "succeeded"
    assert set(log.seen[:2]) == {1, 2} and log.seen[2:] == [3, 4]
    assert "jobs:waiting" not in await left_keys(server) and "jobs:dependents:{uid}" not in await left_keys(server)


async def test_a_failure_passes_on_to_all_that_wait(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book)
    parent = await jobs.options(keep_seconds=60).enqueue("t.fail", n=1)
    child = await jobs.options(after=[parent]).enqueue("t.note", n=2)
    grandchild = await jobs.options(after=[child]).enqueue("t.note", n=3)
    async with at_work(server, book):
        state = await grandchild.wait(30)
        assert state.status == "failed" and "a job it waited for did not succeed" in state.error
        late = await jobs.options(after=[parent]).enqueue("t.note", n=4)
        assert (await late.wait(30)).status == "failed"
    assert log.seen == [(1, 1), (1, 2), (1, 3)]
    assert "jobs:waiting" not in await left_keys(server)


async def test_the_last_job_of_a_batch_starts_what_follows(server: Valkey, book: JobBook, log: Log) -> None:
    calls = [("t.note", {"n": n}) for n in range(50)] + [("t.fail", {"n": 1})]
    async with at_work(server, book):
        batch = await Jobs(server, book).enqueue_batch(calls, then=JobRef("t.told", {"end": "yes"}))
        await until(lambda: {"end": "yes"} in log.seen)
        await asyncio.sleep(0.1)
    assert log.seen.count({"end": "yes"}) == 1 and log.seen[-1] == {"end": "yes"}
    progress = await batch.progress()
    assert (progress.total, progress.left, progress.failed) == (51, 0, 1)


async def test_a_job_can_be_called_off(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book)
    keep = jobs.options(keep_seconds=60)
    queued, other = await keep.enqueue("t.note", n=1), await keep.enqueue("t.note", n=2)
    later = await keep.options(delay_seconds=0.2).enqueue("t.note", n=3)
    assert await queued.cancel() and await later.cancel()
    async with at_work(server, book):
        assert (await queued.wait(30)).status == "cancelled"
        assert (await other.wait(30)).status == "succeeded" and not await other.cancel()
        held = await keep.enqueue("t.hold", n=4)
        await until(lambda: 4 in log.seen)
        assert await held.cancel()
        assert (await held.wait(30)).status == "cancelled"
        assert (await later.wait(30)).status == "cancelled"
    assert log.seen == [2, 4]
    assert "jobs:cancelled" not in await left_keys(server)


async def test_nothing_is_taken_while_a_queue_is_paused(server: Valkey, book: JobBook, log: Log) -> None:
    jobs, inspection = Jobs(server, book), Inspection(server, SystemClock())
    await inspection.pause()
    await jobs.enqueue("t.note", n=1)
    async with at_work(server, book):
        await asyncio.sleep(0.5)
        assert not log.seen
        await inspection.resume()
        await until(lambda: log.seen == [1])


async def test_one_worker_serves_several_queues(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book)
    await jobs.options(queue="mail").enqueue("t.note", n=1)
    await jobs.enqueue("t.note", n=2)
    async with at_work(server, book, queues=("mail", "hot")):
        await until(lambda: sorted(log.seen) == [1, 2])
        await jobs.options(queue="mail").enqueue("t.fail", n=3)
        await until(lambda: dead(server, "mail"))
    assert await dead(server, "mail") == [("ValueError: no 3", 3)] and await dead(server) == []


async def test_runs_of_a_limited_job_begin_at_its_rate(server: Valkey, log: Log) -> None:
    begun: list[float] = []

    async def call(n: int) -> None:
        begun.append(time.time())

    book = JobBook()
    book.register("t.call", call, rate=Rate(2, 1.0))
    await Jobs(server, book).enqueue_many("t.call", ({"n": n} for n in range(5)))
    async with at_work(server, book):
        await until(lambda: len(begun) == 5)
    # Two seconds in all. A slow machine can only widen that, unless it held up the first one: hence one second.
    assert begun[-1] - begun[0] >= 1.0


async def test_middleware_surrounds_each_run(server: Valkey, log: Log) -> None:
    async def outer(context, call):
        log.seen.append(f"outer {context.name}")
        try:
            return await call(context)
        finally:
            log.seen.append("outer end")

    async def inner(context, call):
        log.seen.append("inner")
        return await call(context)

    book = JobBook()
    book.register("t.note", log.note)
    await Jobs(server, book).enqueue("t.note", n=1)
    async with at_work(server, book, middleware=[outer, inner]):
        await until(lambda: len(log.seen) == 4)
    assert log.seen == ["outer t.note", "inner", 1, "outer end"]


async def test_a_follower_is_queued_with_the_end(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book).options(
        on_success=JobRef("t.told", {"went": "well"}), on_failure=JobRef("t.told", {"went": "wrong"})
    )
    await jobs.enqueue("t.note", n=1)
    await jobs.enqueue("t.fail", n=2)
    async with at_work(server, book):
        await until(lambda: {"went": "well"} in _went(log) and {"went": "wrong"} in _went(log))


def _went(log: Log) -> list[dict[str, object]]:
    return [{"went": seen["went"]} for seen in log.seen if isinstance(seen, dict)]


async def test_stopping_waits_for_what_runs_and_gives_back_the_rest(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).enqueue_many("t.hold", ({"n": n} for n in range(4)))
    async with at_work(server, book, concurrency=2) as worker:
        await until(lambda: len(log.seen) == 2)
        worker.stop()
        log.gate.set()
    assert log.seen == [0, 1] and await Queue().work.length(server) == 2
    assert await Queue().work.worker(worker.name).held(server) == 0


async def test_what_does_not_end_in_time_is_given_back(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).enqueue_many("t.hold", ({"n": n} for n in range(3)))
    async with at_work(server, book, grace_seconds=0.1) as worker:
        await until(lambda: len(log.seen) == 3)
    assert await Queue().work.length(server) == 3
    assert await Queue().work.worker(worker.name).held(server) == 0


async def test_a_worker_that_is_cancelled_gives_back_what_it_runs(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).enqueue("t.hold", n=1)
    worker = Worker(server, book)
    task = asyncio.create_task(worker.run())
    await until(lambda: log.seen)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await Queue().work.length(server) == 1


async def test_at_most_once_forgets_a_job_before_it_runs(server: Valkey, book: JobBook, log: Log) -> None:
    jobs = Jobs(server, book)
    async with at_work(server, book, at_most_once=True) as worker:
        await jobs.enqueue("t.hold", n=1)
        await until(lambda: log.seen)
        assert await Queue().work.worker(worker.name).held(server) == 0
        await jobs.enqueue("t.fail", n=2)
        await until(lambda: worker.tally.failed == 1)
        log.gate.set()
    assert await dead(server) == [] and log.seen == [1, (2, 1)]


async def test_a_dead_workers_jobs_are_taken_over(server: Valkey, book: JobBook, log: Log) -> None:
    """A worker that took jobs and then gave no sign of life any more."""
    await Jobs(server, book).enqueue_many("t.note", ({"n": n} for n in range(5)))
    ghost = Queue().work.worker("ghost")
    await ghost.take(server, 3, now=time.time())
    async with at_work(server, book):
        await until(lambda: sorted(log.seen) == [0, 1, 2, 3, 4])
    assert await left_keys(server) <= {*RESIDUE, "jobs:hot:poison"}


async def test_settings_without_sense_are_refused() -> None:
    for bad in ({"concurrency": 0}, {"threads": 0}, {"queues": ()}):
        with pytest.raises(DeclarationError, match="a worker needs a queue"):
            WorkerSettings(**bad)


def test_jobs_keep_their_type() -> None:
    assert isinstance(Job(lambda: None, name="a.b"), Job)


async def test_progress_is_told_from_the_queue_to_the_end(server: Valkey, log: Log) -> None:
    async def steps(n: int) -> None:
        for step in range(n):
            await current_job().progress(f"step {step}", at=step, of=n)
        if current_job().attempt == 1:
            raise ValueError("once more")

    def in_thread(n: int) -> None:
        current_job().progress_from_thread("from a thread")

    book = JobBook()
    book.register("t.steps", steps, retry=QUICK, progress=True)
    book.register("t.thread", in_thread)
    jobs = Jobs(server, book)
    first = await jobs.options(keep_seconds=60).enqueue("t.steps", n=2)
    second = await jobs.options(keep_seconds=60, progress=True, queue="mail").enqueue("t.thread", n=1)
    async with at_work(server, book, queues=("hot", "mail")):
        await first.wait(30)
        await second.wait(30)
    events = await PROGRESS_EVENTS.at(first.uid).range(server)
    assert [event.type for event in events] == [
        "queued", "started", "progress", "progress", "bounce", "started", "progress", "progress", "succeeded"
    ]
    assert [event.message for event in await PROGRESS_EVENTS.at(second.uid).range(server)][2] == "from a thread"


async def test_a_callback_is_told_of_the_outcome(server: Valkey, book: JobBook, log: Log) -> None:
    await Jobs(server, book).options(on_failure=JobRef("t.told", {"x": 1})).enqueue("t.fail", n=2)
    async with at_work(server, book):
        await until(lambda: any(isinstance(seen, dict) for seen in log.seen))
    [seen] = [seen for seen in log.seen if isinstance(seen, dict)]
    outcome = decode_data_raw(seen["data_raw"])
    assert seen["x"] == 1 and (outcome["name"], outcome["status"], outcome["attempts"], outcome["error"]) == (
        "t.fail", "failed", 3, "ValueError: no 2"
    )


async def test_room_beside_long_jobs_is_used(server: Valkey, book: JobBook, log: Log) -> None:
    """Three of four places are taken for hours; the fourth serves all the others."""
    jobs = Jobs(server, book)
    async with at_work(server, book, concurrency=4):
        await jobs.enqueue_many("t.hold", ({"n": -n} for n in range(1, 4)))
        await until(lambda: len(log.seen) == 3)
        await jobs.enqueue_many("t.note", ({"n": n} for n in range(20)))
        await until(lambda: len(log.seen) == 23)
        log.gate.set()


async def test_a_job_called_off_before_its_first_step_frees_its_place(server: Valkey, book: JobBook, log: Log) -> None:
    class Hasty(Worker):
        def called_off(self, uids):
            """It hears of it in the worst moment only."""

        def _start(self, station, item, jobs):
            super()._start(station, item, jobs)
            self.cancel(item.value.uid)

    jobs = Jobs(server, book).options(keep_seconds=60)
    handles = [await jobs.enqueue("t.hold", n=n) for n in range(3)]
    for handle in handles:
        await Queue().cancelled.add(server, handle.uid, time.time())
    worker = Hasty(server, book, WorkerSettings(concurrency=1))
    task = asyncio.create_task(worker.run())
    for handle in handles:
        assert (await handle.wait(30)).status == "cancelled"
    worker.stop()
    async with asyncio.timeout(30):
        await task
    assert log.seen == [] and worker.running == 0


async def test_what_is_taken_while_stopping_is_given_back(server: Valkey, book: JobBook, log: Log) -> None:
    """The answer to a take that was under way comes when nothing runs any more."""
    await Jobs(server, book).enqueue_many("t.hold", ({"n": n} for n in range(3)))
    worker = Worker(server, book, WorkerSettings(grace_seconds=0.1))
    [station] = worker._stations
    take = station.take

    async def slow(most, **how):
        taken = await take(most, **how)
        worker.stop()
        await asyncio.sleep(0.5)
        return taken

    station.take = slow
    async with asyncio.timeout(30):
        await worker.run()
    assert log.seen == [] and await Queue().work.length(server) == 3
    assert await station.hands.held(server) == 0


async def test_a_job_after_others_still_waits_for_its_time(server: Valkey, book: JobBook, log: Log) -> None:
    jobs, now = Jobs(server, book), time.time()
    parent = await jobs.options(keep_seconds=60).enqueue("t.note", n=1)
    child = await jobs.options(after=[parent, parent], at=now + 3).enqueue("t.note", n=2)
    async with at_work(server, book):
        await parent.wait(30)
        assert (await child.wait(30)).status == "succeeded"
        state = await child.state()
        assert state.started_at >= now + 2.9
    assert log.seen == [1, 2] and "jobs:waiting" not in await left_keys(server)


async def test_a_job_given_up_after_crashes_ends_like_any_that_failed(server: Valkey, book: JobBook, log: Log) -> None:
    """State, batch, unique key, dependents and callback: all that follows from an end."""
    jobs = Jobs(server, book)
    deadly = await jobs.options(
        keep_seconds=60, unique="one", on_failure=JobRef("t.told", {"went": "wrong"})
    ).enqueue("t.hold", n=1)
    child = await jobs.options(after=[deadly]).enqueue("t.note", n=2)
    batch = await jobs.enqueue_batch([("t.hold", {"n": 3})], then=JobRef("t.told", {"went": "on"}))
    for n in range(3):
        ghost = Queue().work.worker(f"ghost{n}")
        await ghost.take(server, 1, now=time.time())
        await ghost.take(server, 1, now=time.time(), leftovers_first=False)
        assert await ghost.held(server) == 2
        await server.run(("DEL", Queue().work.alive_key.at(f"ghost{n}").name(server.layout)), int)
        if n < 2:
            await Queue().work.adopt(server, now=time.time())
    async with at_work(server, book):
        state = await deadly.wait(30)
        assert (state.status, state.attempts) == ("failed", 3) and "died with it" in state.error
        assert (await child.wait(30)).status == "failed"
        await until(lambda: {"went": "wrong"} in _went(log) and {"went": "on"} in _went(log))
        assert await Queue().unique("one").get(server) is None
        progress = await batch.progress()
        assert (progress.left, progress.failed) == (0, 1)
    assert len(await dead(server)) == 3 and 1 not in log.seen and 3 not in log.seen
    assert "jobs:given_up" not in await left_keys(server)


async def test_a_pause_holds_for_a_worker_that_is_waiting_already(server: Valkey, book: JobBook, log: Log) -> None:
    jobs, inspection = Jobs(server, book), Inspection(server, SystemClock())
    async with at_work(server, book):
        for n in range(5):
            await jobs.enqueue("t.note", n=n)
            await until(lambda n=n: len(log.seen) == n + 1)
            await asyncio.sleep(0.05)  # it waits on the list by now
            await inspection.pause()
            await jobs.enqueue("t.note", n=100 + n)
            await asyncio.sleep(0.1)
            assert len(log.seen) == n + 1
            await inspection.resume()
            await until(lambda n=n: 100 + n in log.seen)
            log.seen.pop()


async def test_of_several_queues_one_waits_while_a_suspect_of_the_other_runs(
    server: Valkey, book: JobBook, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that may kill its worker is alone there, whatever the other queue holds."""
    monkeypatch.setattr("keystead.jobs.worker.SUSPECT_SECONDS", 0.1)
    beside: list[int] = []

    async def suspect() -> None:
        beside.append(worker.running - 1)
        await asyncio.sleep(0.2)
        beside.append(worker.running - 1)

    async def busy(n: int) -> None:
        await asyncio.sleep(0.01)

    book.register("t.suspect", suspect)
    book.register("t.busy", busy)
    jobs = Jobs(server, book)
    await jobs.enqueue("t.suspect")
    for n in range(2):
        ghost = Queue().work.worker(f"ghost{n}")
        await ghost.take(server, 1, now=time.time())
        await server.run(("DEL", Queue().work.alive_key.at(f"ghost{n}").name(server.layout)), int)
        await Queue().work.adopt(server, now=time.time())
    await jobs.options(queue="mail").enqueue_many("t.busy", ({"n": n} for n in range(2000)))
    async with at_work(server, book, queues=("mail", "hot"), concurrency=10) as worker:
        await until(lambda: len(beside) == 2)
        await until(lambda: worker.tally.done == 2001)
    assert beside == [0, 0]


async def test_a_server_that_takes_no_writes_is_waited_for(valkey: Valkey, book: JobBook, log: Log) -> None:
    """Its memory is full: a job that ended meanwhile is settled later, and the worker is still there."""
    jobs = Jobs(valkey, book).options(keep_seconds=60)
    async with at_work(valkey, book):
        held = await jobs.enqueue("t.hold", n=1)
        await until(lambda: log.seen == [1])
        try:
            await valkey.run(("CONFIG", "SET", "maxmemory", "1"), bool)
            log.gate.set()
            await asyncio.sleep(2.5)
        finally:
            await valkey.run(("CONFIG", "SET", "maxmemory", "0"), bool)
        assert (await held.wait(30)).status == "succeeded"
        assert (await (await jobs.enqueue("t.note", n=2)).wait(30)).status == "succeeded"
    assert log.seen.count(2) == 1
