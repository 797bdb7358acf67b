"""What an inspection sees of queues, workers and jobs, and what it changes."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import HIGH_RESOURCE_COST, JobBook, Jobs, Worker, WorkerSettings, job
from keystead.jobs.inspection import Inspection
from keystead.jobs.inspection_views import RecurringView
from keystead.jobs.keys import QUEUES, WORKER, WORKERS, Queue
from keystead.jobs.models import JobRecord, WorkerState
from keystead.patterns.worklist_items import Item

PATIENCE_SECONDS = 60


@job(name="runners.greet")
async def greet(name: str) -> None: ...


@job(name="runners.render", category=HIGH_RESOURCE_COST)
async def render(uid: str) -> None: ...


@pytest.fixture
def jobs(server: Valkey) -> Jobs:
    return Jobs(server, JobBook.of(greet, render))


@pytest.fixture
def inspection(server: Valkey) -> Inspection:
    return Inspection(server, SystemClock())


async def hold(server: Valkey, worker: str, most: int, queue: str = "") -> list[Item[JobRecord]]:
    """Let a worker of this name take jobs, and sit on them."""
    hands = Queue(queue).work.worker(worker)
    await hands.beat(server)
    return (await hands.take(server, most, now=0.0)).items


async def bury(server: Valkey, error: str, *, queue: str = "", most: int = 1, now: float = 1000.0) -> None:
    """Let the oldest jobs die of an error."""
    hands = Queue(queue).work.worker("undertaker")
    await hands.beat(server)
    taken = await hands.take(server, most, now=now)
    assert taken.items
    await hands.bury(server, taken.items, error=error, now=now)


async def test_queues_are_counted(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    for name in ("a", "b", "c", "d"):
        await jobs.enqueue(greet, name=name)
    await hold(server, "one", 2)
    await bury(server, "it broke")
    await jobs.enqueue(render, uid="x")  # sorted into the list of its category
    await jobs.options(delay_seconds=600).enqueue(greet, name="later")
    parent = await jobs.options(keep_seconds=60).enqueue(greet, name="first")
    await jobs.options(after=[parent]).enqueue(greet, name="second")
    await jobs.options(queue="mail").enqueue(greet, name="letter")
    await inspection.pause("mail")
    hot, mail = await inspection.queues()
    assert (hot.name, hot.queued, hot.delayed, hot.running, hot.waiting, hot.dead, hot.paused, hot.workers) == \
        ("hot", 3, 1, 2, 1, 1, False, 2)
    assert (mail.name, mail.queued, mail.paused, mail.workers) == ("mail", 1, True, 0)
    assert await inspection.queues(["mail"]) == (mail,)


async def test_a_named_queue_is_known_however_it_was_first_used(server: Valkey, jobs: Jobs, inspection) -> None:
    assert await inspection.queue_names() == ["hot"]
    await jobs.options(queue="one").enqueue(greet, name="a")
    await jobs.options(queue="two", keep_seconds=9).enqueue(greet, name="a")
    await jobs.options(queue="three").enqueue_many(greet, [{"name": "a"}])
    await jobs.options(queue="four").enqueue_batch([(greet, {"name": "a"})])
    assert await inspection.queue_names() == ["hot", "four", "one", "three", "two"]
    async with server.pipeline(transaction=True) as block:
        handle = jobs.options(queue="five", on=block).enqueue(greet, name="a")
        # Only what the caller put there: the replies are the caller's to read.
        assert len(await block.execute()) == 1
    assert (await handle).queue == "five"


async def test_hot_is_the_queue_without_a_name(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    handle = await jobs.options(queue="hot").enqueue(greet, name="a")
    await jobs.enqueue(greet, name="b")
    [hot] = await inspection.queues()
    assert (handle.queue, hot.name, hot.queued) == ("", "hot", 2)


async def test_pausing_and_resuming(server: Valkey, inspection: Inspection) -> None:
    await inspection.pause()
    await inspection.pause("mail")
    assert await Queue().paused.is_raised(server) and await Queue("mail").paused.is_raised(server)
    assert await inspection.resume() and not await inspection.resume()
    assert not await Queue().paused.is_raised(server) and await Queue("mail").paused.is_raised(server)


async def test_recurring_jobs_of_all_queues_come_by_their_next_run(server: Valkey, inspection: Inspection) -> None:
    assert await inspection.recurring() == []
    for queue, member, next_at in (("", "17", 3000.0), ("mail", "18", 1000.0), ("mail", "17", 2000.0)):
        await Queue(queue).recurring.next.add(server, member, next_at)
    await server.zadd(Queue().recurring.next.name(server.layout), {b"\xff\xfe": 1})  # of another program
    await Queue().recurring.names.set(server, "17", "shop.greet")
    await Queue("mail").recurring.last.set(server, "17", 900)
    await QUEUES.at().add(server, "mail")
    found = [RecurringView("mail", "18", "", 1000.0, None), RecurringView("mail", "17", "", 2000.0, 900),
             RecurringView("hot", "17", "shop.greet", 3000.0, None)]
    assert await inspection.recurring() == found
    assert await inspection.recurring(most=1) == found[:1] and await inspection.recurring(["hot"]) == found[2:]
    assert [view.title for view in found] == ["entry 18", "entry 17", "shop.greet"]


async def test_workers_are_told_apart_from_those_that_died(server: Valkey, inspection: Inspection) -> None:
    state = WorkerState(host="here", pid=7, started_at=1.0, beat_at=2.0, queues="hot", concurrency=10, running=3)
    await WORKERS.at().add(server, "dead", 100.0)
    await WORKERS.at().add(server, "alive", 200.0)
    await WORKER.at("alive").set(server, state)
    mark = Queue().work.alive_key.at(worker="alive").name(server.layout)
    await server.set(mark, "1", ex=600)  # for as long as a slow machine takes to look
    alive, dead = await inspection.workers()
    assert (alive.name, alive.alive, alive.seen_at, alive.state) == ("alive", True, 200.0, state)
    assert (dead.name, dead.alive, dead.seen_at, dead.state) == ("dead", False, 100.0, None)
    assert alive.as_dict()["running"] == 3 and "running" not in dead.as_dict()


async def test_a_state_that_does_not_decode_hides_no_worker(server: Valkey, inspection: Inspection) -> None:
    for name in ("good", "bad"):
        await WORKERS.at().add(server, name, 1.0)
    await server.run(("HSET", WORKER.at("bad").name(server.layout), "pid", "many"), int)
    assert {(worker.name, worker.state) for worker in await inspection.workers()} == {("good", None), ("bad", None)}


async def test_a_real_worker_is_seen_with_its_work(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @job(name="runners.slow")
    async def slow() -> None:
        begun.set()
        await may_end.wait()

    worker = Worker(server, JobBook.of(greet, slow), WorkerSettings(queues=("hot", "mail"), concurrency=5))
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await jobs.enqueue(greet, name="a")
        handle = await jobs.enqueue(slow)
        await begun.wait()
        while not (seen := await inspection.workers()) or seen[0].state is None or seen[0].state.running != 1 \
                or (await inspection.totals()).done != 1:
            await asyncio.sleep(0.05)
        assert seen[0].name == worker.name and seen[0].alive and seen[0].state.queues == "hot mail"
        page = await inspection.jobs("running")
        assert [(view.uid, view.worker) for view in page.jobs] == [(handle.uid, worker.name)]
        assert "mail" in await inspection.queue_names() and await QUEUES.at().contains(server, "mail")
        may_end.set()
        worker.stop()
    assert (await inspection.snapshot()).totals.done == 2
    assert not (await inspection.jobs("running")).jobs and not await inspection.workers()


async def test_pages_run_over_all_lists_of_a_queue(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    for number in range(3):
        await jobs.enqueue(render, uid=str(number))
    for number in range(3, 7):
        await jobs.enqueue(greet, name=str(number))
    page = await inspection.jobs("queued", first=1, most=4)
    assert (page.first, page.total) == (1, 7)
    assert [[*view.record.kwargs.values()] for view in page.jobs] == [["1"], ["2"], ["3"], ["4"]]
    assert [view.place for view in page.jobs] == ["queued"] * 4
    beyond = await inspection.jobs("queued", first=7)
    assert (beyond.jobs, beyond.total) == ([], 7)


async def test_running_jobs_say_who_runs_them(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    for name in ("a", "b", "c"):
        await jobs.enqueue(greet, name=name)
    await hold(server, "one", 2)
    await hold(server, "two", 1)
    page = await inspection.jobs("running")
    assert [(view.worker, view.record.kwargs["name"]) for view in page.jobs] == \
        [("one", "a"), ("one", "b"), ("two", "c")]


async def test_delayed_jobs_say_when_they_are_due(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    for at in (5_000_000_300, 5_000_000_100, 5_000_000_200):
        await jobs.options(at=at).enqueue(greet, name=str(at))
    page = await inspection.jobs("delayed", first=1, most=5)
    assert ([view.due_at for view in page.jobs], page.total) == ([5_000_000_200, 5_000_000_300], 3)


async def test_jobs_that_wait_for_others_are_shown(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    parent = await jobs.options(keep_seconds=60).enqueue(greet, name="first")
    children = [(await jobs.options(after=[parent]).enqueue(greet, name=str(n))).uid for n in range(3)]
    page = await inspection.jobs("waiting")
    assert ({view.uid for view in page.jobs}, page.total) == (set(children), 3)


async def test_dead_letters_come_newest_first(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    for number in range(5):
        await jobs.enqueue(greet, name=str(number))
        await bury(server, f"error {number}", now=1000.0 + number)
    page = await inspection.jobs("dead", first=1, most=2)
    assert [(view.error, view.dead_at) for view in page.jobs] == [("error 3", 1003.0), ("error 2", 1002.0)]
    last = await inspection.jobs("dead", first=4, most=50)
    assert [view.record.kwargs["name"] for view in last.jobs] == ["0"]
    assert (await inspection.jobs("dead", first=5)).jobs == []


async def test_bytes_that_are_no_job_are_shown_as_such(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    await server.run(("RPUSH", Queue().work.queue.name(server.layout), b"\xff no job"), int)
    await jobs.enqueue(greet, name="a")
    spoiled, good = (await inspection.jobs("queued")).jobs
    assert spoiled.record is None and spoiled.problem and spoiled.raw == b"\xff no job" and spoiled.uid == ""
    assert good.record is not None
    assert spoiled.as_dict()["bytes"] == 8 and good.as_dict()["kwargs"] == {"name": "a"}


# -- one job -----------------------------------------------------------------------------------------------------------


async def test_a_job_is_found_wherever_it_lies(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    held = await jobs.enqueue(greet, name="held")
    await hold(server, "one", 1)
    dead = await jobs.enqueue(greet, name="dead")
    await bury(server, "it broke")
    queued = await jobs.enqueue(greet, name="queued")
    sorted_one = await jobs.enqueue(render, uid="x")
    delayed = await jobs.options(delay_seconds=600).enqueue(greet, name="delayed")
    kept = await jobs.options(keep_seconds=60, queue="mail").enqueue(greet, name="kept")
    child = await jobs.options(after=[kept], queue="mail").enqueue(greet, name="child")
    places = {}
    for handle in (held, dead, queued, sorted_one, delayed, kept, child):
        found = await inspection.find(handle.uid)
        assert found is not None and found.view is not None and found.view.uid == found.uid == handle.uid
        places[handle.uid] = found.queue, found.view.place, found.state.status if found.state else None
    assert list(places.values()) == [
        ("hot", "running", None), ("hot", "dead", None), ("hot", "queued", None), ("hot", "queued", None),
        ("hot", "delayed", None), ("mail", "queued", "queued"), ("mail", "waiting", "waiting"),
    ]
    assert await inspection.find("nobody") is None
    assert await inspection.find(queued.uid, ["mail"]) is None


async def test_a_job_that_ended_is_known_by_its_state(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    handle = await jobs.options(keep_seconds=60).enqueue(greet, name="a")
    await hold(server, "one", 1)
    await Queue().job(handle.uid).update(server, status="succeeded")
    found = await inspection.find(handle.uid)
    assert found is not None and found.view is None and found.state is not None and found.state.name == "runners.greet"
    assert found.as_dict()["found"] is None


async def test_a_job_of_a_queue_that_is_new_is_found(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    assert await inspection.find("nobody") is None  # from now on it knows some queues
    handle = await jobs.options(keep_seconds=60, queue="new").enqueue(greet, name="a")
    for status in ("succeeded", "succeeded", "cancelled"):
        await Queue("new").job(handle.uid).update(server, status=status)
        found = await inspection.find(handle.uid)
        assert found is not None and found.state is not None
        assert (found.queue, found.state.status, found.view) == ("new", status, None)


async def test_a_search_that_was_cut_short_says_so(server: Valkey, jobs: Jobs, inspection, monkeypatch) -> None:
    monkeypatch.setattr("keystead.jobs.inspection.SEARCHED_ITEMS", 20)
    monkeypatch.setattr("keystead.jobs.inspection.STEP_ITEMS", 10)
    uids = await jobs.enqueue_many(greet, ({"name": str(n)} for n in range(25)))
    near, far = await inspection.find(uids[19]), await inspection.find(uids[20])
    assert near is not None and near.view is not None and near.searched_all
    assert far is not None and far.view is None and not far.searched_all
    assert await inspection.cancel(uids[20]), "it may well be in there"
    assert [member for member, _ in await Queue().cancelled.range(server)] == [uids[20]]


async def test_cancelling(server: Valkey, jobs: Jobs, inspection: Inspection) -> None:
    dead = await jobs.enqueue(greet, name="dead")
    await bury(server, "it broke")
    handle = await jobs.options(queue="mail").enqueue(greet, name="a")
    assert await inspection.cancel(handle.uid)
    assert [member for member, _ in await Queue("mail").cancelled.range(server)] == [handle.uid]
    assert not await inspection.cancel(dead.uid) and not await inspection.cancel("nobody")
    assert not await Queue().cancelled.range(server)
