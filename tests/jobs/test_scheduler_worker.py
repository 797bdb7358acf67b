"""An instance of the scheduler: what it runs, how it fails, when it leaves a task alone, how it stops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import Invalid
from keystead.jobs import GiveUp, JobBook, Retry, RetryLater
from keystead.jobs.context import current_job
from keystead.jobs.keys import (
    JOBS,
    TASKS_ACTIVE,
    TASKS_ORPHANS,
    TASKS_PAYLOAD,
    TASKS_PROCESSING,
    TASKS_QUEUE,
    TASKS_SCHEDULED,
)
from keystead.jobs.models import Task
from keystead.jobs.scheduler import Scheduler, SchedulerSettings, TaskState
from keystead.jobs.scheduler_worker import SchedulerWorker
from keystead.keys import Registry
from keystead.telemetry import counts
from tests.faults.scheduler_instance import QUICK, QUICK_LEADER

# Quick to look and to stop; leases and grace as usual, so that a machine that stands still changes nothing.
CALM = SchedulerSettings(concurrency=8, take_seconds=0.1, promote_seconds=0.05)
AT_ONCE = replace(CALM, retry=Retry(tries=3, first_seconds=0.0))


class Room:
    """A book whose jobs note what they saw."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.book = JobBook()
        self.scheduler = Scheduler(valkey, self.book)
        self.seen: list[Any] = []
        self.go = asyncio.Event()
        self.register("note", self._note)
        self.register("wait", self._wait)

    def register(self, name: str, function: Callable[..., Any], **options: Any) -> None:
        self.book.register(f"tests.{name}", function, **options)

    async def _note(self, what: Any) -> None:
        self.seen.append(what)

    async def _wait(self, what: Any = "waited") -> None:
        self.seen.append("begun")
        await self.go.wait()
        self.seen.append(what)

    @asynccontextmanager
    async def instance(self, settings: SchedulerSettings = CALM, **more: Any) -> AsyncIterator[SchedulerWorker]:
        worker = SchedulerWorker(self.valkey, self.book, settings, **more)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(worker.run())
            try:
                yield worker
            finally:
                self.go.set()
                worker.stop()
                async with asyncio.timeout(60):
                    await asyncio.wait((running,))

    async def until(self, what: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(60):
            while not await what():
                await asyncio.sleep(0.01)

    async def nothing_left(self) -> bool:
        return await TASKS_PAYLOAD.at().size(self.valkey) == 0

    async def state(self, task_id: str) -> TaskState | None:
        view = await self.scheduler.find(task_id)
        return view.state if view else None

    async def is_dead(self, task_id: str) -> bool:
        return await self.state(task_id) is TaskState.DEAD

    async def saw(self, count: int) -> bool:
        return len(self.seen) >= count


@pytest.fixture
async def room(server: Valkey) -> Room:
    return Room(server)


async def test_tasks_are_run_with_their_arguments_and_forgotten(room: Room) -> None:
    def in_a_thread(what: str) -> None:
        room.seen.append((what, current_job().uid, current_job().attempt))

    room.register("thread", in_a_thread)
    await room.scheduler.schedule("tests.note", {"what": {"deep": [1, None]}})
    await room.scheduler.schedule("tests.thread", {"what": "sync"}, task_id="t:1")
    async with room.instance(name="one"):
        await room.until(room.nothing_left)
        assert (await room.scheduler.overview()).leader.startswith("one:")
    assert sorted(room.seen, key=str) == [("sync", "t:1", 1), {"deep": [1, None]}]
    assert await TASKS_PROCESSING.at().length(room.valkey) == 0
    assert (await room.scheduler.overview()).leader == "", "it resigned"
    registry = Registry([JOBS], room.valkey.layout)
    for node in await room.valkey.nodes():
        assert all(registry.resolve(key) for key in await node.call(("KEYS", "*")))


async def test_task_waits_until_it_is_due(room: Room) -> None:
    await room.scheduler.schedule("tests.note", {"what": "later"}, delay_seconds=3600, task_id="later")
    await room.scheduler.schedule("tests.note", {"what": "soon"}, delay_seconds=0.5)
    async with room.instance():
        await room.until(lambda: room.saw(1))
        assert room.seen == ["soon"]
        assert await room.state("later") is TaskState.SCHEDULED


async def test_failing_task_is_tried_again_until_its_tries_are_used_up(room: Room) -> None:
    async def fails() -> None:
        room.seen.append(current_job().attempt)
        raise ValueError(f"attempt {current_job().attempt}")

    room.register("fails", fails)
    await room.scheduler.schedule("tests.fails", task_id="t", max_attempts=3)
    async with room.instance(AT_ONCE):
        await room.until(lambda: room.is_dead("t"))
    assert room.seen == [1, 2, 3]
    [dead] = await room.scheduler.dead()
    assert (dead.attempts, dead.last_error) == (3, "ValueError: attempt 3")


async def test_pause_between_tries_grows_as_the_settings_say(room: Room) -> None:
    async def fails() -> None:
        raise ValueError

    room.register("fails", fails)
    settings = replace(CALM, retry=Retry(tries=5, first_seconds=500.0, jitter=0.0))
    first = await room.scheduler.schedule("tests.fails")
    second = Task("second", "tests.fails", {}, 0.0, 0.0, attempts=2)
    await TASKS_PAYLOAD.at().set(room.valkey, "second", second)
    await TASKS_QUEUE.at().push_left(room.valkey, "second")
    server_now = (await room.valkey.time())[0]

    async def both_wait() -> bool:
        scores = dict(await TASKS_SCHEDULED.at().range(room.valkey))
        return len(scores) == 2 and min(scores.values()) > server_now + 400

    async with room.instance(settings):
        await room.until(both_wait)
    due = dict(await TASKS_SCHEDULED.at().range(room.valkey))
    assert 500 <= due[first.id] - server_now < 600
    assert 900 <= due["second"] - server_now < 1000, "it doubles, and never exceeds 900 s"


async def test_jobs_decide_on_their_own_tries(room: Room) -> None:
    async def useless() -> None:
        raise GiveUp("nobody is there")

    async def later() -> None:
        room.seen.append(current_job().attempt)
        if len(room.seen) < 4:
            raise RetryLater(0.0, counts=False)

    async def picky() -> None:
        raise KeyError("not worth it")

    room.register("useless", useless)
    room.register("later", later)
    room.register("picky", picky, retry=Retry(only=(ValueError,)))
    for name in ("useless", "later", "picky"):
        await room.scheduler.schedule(f"tests.{name}", task_id=name, max_attempts=2)
    async with room.instance(AT_ONCE):
        for name in ("useless", "picky"):
            await room.until(lambda name=name: room.is_dead(name))  # type: ignore[misc]
        await room.until(room.nothing_left)
    assert room.seen == [1, 1, 1, 1]
    assert {task.id: task.last_error for task in await room.scheduler.dead()} == {
        "useless": "GiveUp: nobody is there", "picky": "KeyError: 'not worth it'",
    }


async def test_what_cannot_be_run_is_given_up_with_a_reason_and_the_others_go_on(room: Room) -> None:
    valkey, payload = room.valkey, TASKS_PAYLOAD.at().name(room.valkey.layout)
    stranger = Scheduler(valkey)  # knows no book, so it checks nothing
    await stranger.schedule("os.system", {"command": "true"}, task_id="import")
    await stranger.schedule("tests.note", {"wat": 1}, task_id="arguments")
    await valkey.run(("HSET", payload, "spoiled", b"\xff\xfe"), int)
    await valkey.run(("HSET", payload, "list", b"[1]"), int)
    await TASKS_QUEUE.at().push_left(valkey, "spoiled", "list", "unknown")
    await valkey.run(("LPUSH", TASKS_QUEUE.at().name(valkey.layout), b"\xff\xff", b"new\nline", b""), int)
    await room.scheduler.schedule("tests.note", {"what": "fine"})
    async with room.instance(AT_ONCE):
        await room.until(room.nothing_left)
        await room.until(lambda: room.saw(1))

        async def all_looked_at() -> bool:
            overview = await room.scheduler.overview()
            return overview.ready == overview.processing == 0

        await room.until(all_looked_at)
    assert room.seen == ["fine"]
    dead = {task.id: task for task in await room.scheduler.dead()}
    errors = {name: task.last_error for name, task in dead.items()}
    assert dead["import"].attempts == 5, "another instance might have known it"
    assert set(errors) == {"import", "arguments", "spoiled", "list"}
    assert "no job named 'os.system'" in errors["import"] and "it takes" in errors["arguments"]
    assert "does not decode" in errors["spoiled"] and "does not decode" in errors["list"]


async def test_job_that_takes_too_long_is_interrupted_and_tried_again(room: Room) -> None:
    async def slow() -> None:
        room.seen.append("begun")
        await asyncio.sleep(3600)

    room.register("slow", slow, timeout_seconds=0.05)
    await room.scheduler.schedule("tests.slow", task_id="t", max_attempts=2)
    async with room.instance(AT_ONCE):
        await room.until(lambda: room.is_dead("t"))
    assert room.seen == ["begun", "begun"]
    [dead] = await room.scheduler.dead()
    assert "longer than 0.05 s" in dead.last_error


async def test_heartbeat_keeps_the_lease(room: Room) -> None:
    await room.scheduler.schedule("tests.wait", task_id="t")
    async with room.instance(replace(CALM, heartbeat_seconds=0.05)):
        await room.until(lambda: room.saw(1))
        key = TASKS_ACTIVE.at("t").name(room.valkey.layout)
        assert await room.valkey.pexpire(key, 15_000)

        async def renewed() -> bool:
            return await room.valkey.pttl(key) > 20_000

        await room.until(renewed)
        room.go.set()
        await room.until(room.nothing_left)
    assert room.seen == ["begun", "waited"]


async def test_task_whose_lease_is_lost_is_abandoned(room: Room) -> None:
    """Another holds it now: the handler is interrupted, and nothing it could still say changes the task."""
    abandoned = asyncio.Event()

    async def patient() -> None:
        room.seen.append("begun")
        try:
            await asyncio.sleep(3600)
        finally:
            abandoned.set()

    room.register("patient", patient)
    await room.scheduler.schedule("tests.patient", task_id="t")
    lost = counts.value("scheduler_leases_lost")
    async with room.instance(replace(CALM, heartbeat_seconds=0.05)):
        await room.until(lambda: room.saw(1))
        await room.valkey.set(TASKS_ACTIVE.at("t").name(room.valkey.layout), "other:1", px=20_000)
        async with asyncio.timeout(30):
            await abandoned.wait()

        async def told() -> bool:
            return counts.value("scheduler_leases_lost") == lost + 1

        await room.until(told)
    view = await room.scheduler.find("t")
    assert view is not None and (view.state, view.holder) == (TaskState.PROCESSING, "other:1")
    assert view.task.attempts == 0


async def test_task_of_a_dead_worker_is_run_by_another(room: Room) -> None:
    await room.scheduler.schedule("tests.note", {"what": "saved"}, task_id="t")
    await TASKS_SCHEDULED.at().remove(room.valkey, "t")
    await TASKS_PROCESSING.at().push_left(room.valkey, "t")  # taken, and never claimed
    async with room.instance(QUICK):
        await room.until(room.nothing_left)
    assert room.seen == ["saved"]
    assert await TASKS_ORPHANS.at().size(room.valkey) == 0


async def test_no_more_tasks_run_at_once_than_allowed(room: Room) -> None:
    for number in range(7):
        await room.scheduler.schedule("tests.wait", {"what": number})
    async with room.instance(replace(CALM, concurrency=3)) as worker:
        await room.until(lambda: room.saw(3))

        async def all_due() -> bool:
            overview = await room.scheduler.overview()
            return overview.ready == 4 and overview.processing == 3

        await room.until(all_due)
        assert worker.running == 3
        room.go.set()
        await room.until(room.nothing_left)
    assert sorted(each for each in room.seen if each != "begun") == list(range(7))


async def test_paused_instance_begins_nothing_and_goes_on_when_resumed(room: Room) -> None:
    await room.scheduler.pause()
    await room.scheduler.schedule("tests.note", {"what": 1}, task_id="one")
    await room.scheduler.schedule("tests.note", {"what": 2}, task_id="two")
    await TASKS_SCHEDULED.at().remove(room.valkey, "two")
    await TASKS_QUEUE.at().push_left(room.valkey, "two")  # due before the pause
    async with room.instance() as worker:
        async def has_noticed() -> bool:
            return worker._paused

        await room.until(has_noticed)
        overview = await room.scheduler.overview()
        assert room.seen == [] and overview.scheduled == 1 and overview.ready + overview.processing == 1
        await room.scheduler.resume()
        await room.until(room.nothing_left)
    assert sorted(room.seen) == [1, 2]


async def test_stopping_lets_running_tasks_end(room: Room) -> None:
    await room.scheduler.schedule("tests.wait", task_id="t")
    async with room.instance(replace(CALM, stop_seconds=50.0)) as worker:
        await room.until(lambda: room.saw(1))
        worker.stop()
        await room.scheduler.schedule("tests.note", {"what": "not taken"}, task_id="late")
        room.go.set()
    assert room.seen == ["begun", "waited"]
    assert await room.state("t") is None
    assert await room.state("late") in (TaskState.SCHEDULED, TaskState.READY)


async def test_stopping_fails_what_does_not_end_in_time_without_a_pause(room: Room) -> None:
    async def endless() -> None:
        room.seen.append("begun")
        await asyncio.sleep(3600)

    room.register("endless", endless)
    await room.scheduler.schedule("tests.endless", task_id="t")
    usual = Retry(tries=5, first_seconds=5000.0, jitter=0.0)
    async with room.instance(replace(CALM, stop_seconds=0.05, retry=usual)) as worker:
        await room.until(lambda: room.saw(1))
        worker.stop()
    view = await room.scheduler.find("t")
    assert view is not None and view.task.attempts == 1 and "told to stop" in view.task.last_error
    if view.state is not TaskState.READY:  # due at once: a last look of the instance may have brought it to the front
        now = (await room.valkey.time())[0]
        assert view.due_at is not None and view.due_at < now + 60, "a pause was added"
    overview = await room.scheduler.overview()
    assert overview.processing == 0 and overview.leader == ""
    assert await TASKS_ACTIVE.at("t").get(room.valkey) is None


async def test_an_instance_needs_a_name_without_colons(valkey: Valkey) -> None:
    with pytest.raises(Invalid, match="colon"):
        SchedulerWorker(valkey, JobBook(), name="a:b")


async def test_connections_cut_at_any_moment_lose_no_task(valkey: Valkey, fault_proxy: Any) -> None:
    """Replies of taking, claiming and settling are lost; every task still comes to its end."""
    proxy = await fault_proxy()
    near = await connect(proxy.url)
    room, theirs = Room(near), Room(valkey)

    async def slowly(number: int) -> None:
        await asyncio.sleep(0.02)
        room.seen.append(number)

    room.register("slowly", slowly)
    lost = counts.value("wire_answers_lost")
    try:
        for number in range(200):
            await Scheduler(valkey).schedule("tests.slowly", {"number": number}, max_attempts=1000)
        async with room.instance(replace(QUICK, concurrency=4), leader=QUICK_LEADER):
            for number in range(15):
                proxy.cut_mid_reply(40 + 97 * number)
                await asyncio.sleep(0.05)
            await proxy.restore()
            await theirs.until(theirs.nothing_left)
        assert set(room.seen) == set(range(200))
        assert await TASKS_PROCESSING.at().length(valkey) == 0 == await TASKS_QUEUE.at().length(valkey)
        assert counts.value("wire_answers_lost") > lost, "the test did what it says"
    finally:
        await near.aclose()
