"""The scheduler's steps beside a model, what a client sees of it, and the leader's work."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, Invalid
from keystead.jobs import JobBook, job
from keystead.jobs import scheduler_steps as steps
from keystead.jobs.keys import (
    JOBS,
    SCHEDULER_LEADER,
    TASKS_ACTIVE,
    TASKS_DEAD,
    TASKS_ORPHANS,
    TASKS_PAYLOAD,
    TASKS_PROCESSING,
    TASKS_QUEUE,
    TASKS_SCHEDULED,
)
from keystead.jobs.models import Task
from keystead.jobs.retry import Retry
from keystead.jobs.scheduler import LONGEST_ID, Scheduler, SchedulerSettings, TaskState
from keystead.jobs.scheduler_leader import Promoter
from keystead.jobs.scheduler_steps import Cancelled, Claim, Failed, IfKnown, Refusal, Revived, Scheduled
from keystead.keys import Layout, Registry, key_slot
from keystead.patterns import Term
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer
from tests.patterns.crash import Mortal, crash_points

from .scheduler_model import MOVES, Both

LEADER = SCHEDULER_LEADER.at()


@job(name="tests.greet")
async def greet(name: str, loud: bool = False) -> None: ...


@job(name="tests.stubborn", retry=Retry(tries=9))
async def stubborn() -> None: ...


BOOK = JobBook.of(greet, stubborn)


def at_time(now: float = 1000.0) -> MovableClock:
    return MovableClock(now=now)


async def elected(valkey: Valkey, instance: str = "one") -> Term:
    term = await LEADER.elect(valkey, instance)
    assert isinstance(term, Term)
    return term


async def taken(valkey: Valkey, holder: str = "w:1") -> Claim:
    raw = await steps.take_now(valkey)
    assert raw is not None
    held = await steps.claim(valkey, raw.decode(), holder, 30.0)
    assert isinstance(held, Claim)
    return held


# -- the steps, beside the model ---------------------------------------------------------------------------------------


async def play(url: str, flush: Callable[[], object], moves: list[tuple[Any, ...]]) -> None:
    flush()
    valkey = await connect(url)
    try:
        both = Both(valkey)
        first = [("elect", "one"), *(("schedule", name, 0, IfKnown.KEEP, 3, {}) for name in "ac")]
        for move in (*first, *moves):
            await both.move(*move)
            await both.check()
        await both.everybody_dies_and_the_rest_is_done()
    finally:
        await valkey.aclose()


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_the_steps_do_what_the_model_does(valkey_server: LocalServer, moves: list[tuple[Any, ...]]) -> None:
    asyncio.run(play(valkey_server.url, lambda: valkey_server.call("FLUSHALL"), moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_the_steps_on_a_cluster_do_what_the_model_does(valkey_cluster: Any, moves: list[tuple[Any, ...]]) -> None:
    asyncio.run(play(valkey_cluster.url, valkey_cluster.flush, moves))


async def test_dying_at_any_command_loses_no_task(server: Valkey) -> None:
    """An instance that leads, takes, claims, completes and fails dies before or after each command."""
    ids = ("done", "failed", "later")
    async for mortal in crash_points(server):
        for node in await server.nodes():
            await node.call(("FLUSHALL",))
        term = await elected(server)
        try:
            await one_life(mortal, term, ids)
        except BaseException as died:
            if not mortal.dead:
                raise died
        known = await TASKS_PAYLOAD.at().all(server)
        await LEADER.reference.delete(server)
        successor = await elected(server, "two")
        for now in (5000.0, 5010.0):
            await steps.reclaim(server, successor.value, now=now, grace_seconds=5.0)
            for name in ids:
                await TASKS_ACTIVE.at(name).delete(server)
        await steps.reclaim(server, successor.value, now=5020.0, grace_seconds=5.0)
        await steps.promote(server, successor.value, 100, now=5020.0)
        rest = []
        while await TASKS_QUEUE.at().length(server):
            held = await taken(server, f"w:{len(rest) + 2}")
            rest.append(held.id)
            assert await steps.complete(server, held)
        assert sorted(rest) == sorted(known), "each task that was known is run, once"
        assert not await TASKS_PROCESSING.at().length(server) and not await TASKS_PAYLOAD.at().size(server)
        if not mortal.dead:
            assert rest == ["failed", "later"]
            return


async def one_life(mortal: Mortal, term: Term, ids: tuple[str, ...]) -> None:
    on: Any = mortal
    for place, name in enumerate(ids):
        await steps.schedule(on, Task(name, "job", {}, 1000.0 + place, 1000.0))
    await steps.promote(on, term.value, 2, now=1005.0)
    for number in range(2):
        raw = await steps.take_now(on)
        assert raw is not None
        held = await steps.claim(on, raw.decode(), f"w:{number}", 30.0)
        assert isinstance(held, Claim)
        await steps.heartbeat(on, held, 30.0)
        await (steps.complete(on, held) if number == 0 else steps.fail(on, held, "broken", 1001.0))


async def test_a_thousand_leaders_in_two_years_run_each_task_once(valkey: Valkey) -> None:
    """Leaders change between any two batches, some of them behind with their work; earlier ones wake and try on."""
    rng, day = random.Random(4), 86400.0
    due = {f"t{number}": rng.uniform(0, 730 * day) for number in range(1500)}
    async with valkey.pipeline(transaction=False) as pipeline:
        for name, at in due.items():
            steps.schedule(pipeline, Task(name, "job", {}, at, 0.0))
        await pipeline.execute()
    now, stale, ran = 0.0, [Term("nobody", 0, 0.0)], list[tuple[str, float]]()
    for number in range(1000):
        term = await elected(valkey, f"i{number}")
        now = min(now + rng.choice((0.2, 0.9, 1.0)) * 1.1 * day, 800 * day)
        assert await steps.promote(valkey, rng.choice(stale).value, 1000, now=now) is None
        most = rng.randint(1, 40)
        promoted = await steps.promote(valkey, term.value, most, now=now)
        assert promoted is not None and promoted.moved <= most
        while await steps.take_now(valkey) is not None:
            [name] = await TASKS_PROCESSING.at().range(valkey)
            held = await steps.claim(valkey, name, f"w:{len(ran)}", 30.0)
            assert isinstance(held, Claim) and await steps.complete(valkey, held)
            ran.append((name, now))
        stale.append(term)
        await LEADER.resign(valkey, term)
    assert await LEADER.epoch.get(valkey) == 1000
    assert [name for name, _ in ran] == sorted(due, key=lambda name: due[name]), "each once, in the order they were due"
    assert all(due[name] <= at for name, at in ran), "and none before its time"


# -- single steps ------------------------------------------------------------------------------------------------------


async def test_due_tasks_run_once_each_in_the_order_they_were_due(server: Valkey) -> None:
    """After any downtime: nothing is skipped and nothing is doubled, and a new batch goes on where the last ended."""
    term = await elected(server)
    for number in (3, 1, 4, 0, 2):
        await steps.schedule(server, Task(f"t{number}", "job", {}, 1000.0 + number, 900.0))
    first = await steps.promote(server, term.value, 3, now=90_000.0)
    assert first == steps.Promoted(3, 0, 1003.0)
    assert await steps.promote(server, term.value, 3, now=90_000.0) == steps.Promoted(2, 0, None)
    assert [(await taken(server, f"w:{number}")).id for number in range(5)] == ["t0", "t1", "t2", "t3", "t4"]
    assert await steps.take_now(server) is None


async def test_reclaimed_task_is_served_next(server: Valkey) -> None:
    term = await elected(server)
    for number in range(3):
        await steps.schedule(server, Task(f"t{number}", "job", {}, float(number), 0.0))
    await steps.promote(server, term.value, 10, now=10.0)
    await taken(server)
    await TASKS_ACTIVE.at("t0").delete(server)
    found = await steps.reclaim(server, term.value, now=20.0, grace_seconds=5.0)
    assert found == steps.Reclaimed(0, 0, 0, 1)
    assert await steps.reclaim(server, term.value, now=24.9, grace_seconds=5.0) == steps.Reclaimed(0, 0, 0, 1)
    assert await steps.reclaim(server, term.value, now=25.0, grace_seconds=5.0) == steps.Reclaimed(1, 0, 0, 0)
    again = await taken(server, "w:2")
    assert again.id == "t0"
    task = TASKS_PAYLOAD.codec.decode(again.raw)
    assert task.attempts == 1 and task.last_error == steps.LOST_WORKER


async def test_task_that_loses_its_worker_each_time_is_given_up(server: Valkey) -> None:
    term = await elected(server)
    await steps.schedule(server, Task("t", "job", {}, 0.0, 0.0, max_attempts=2))
    await steps.promote(server, term.value, 10, now=1.0)
    for number in range(2):
        await taken(server, f"w:{number}")
        await TASKS_ACTIVE.at("t").delete(server)
        for now in (100.0 * number, 100.0 * number + 50):
            await steps.reclaim(server, term.value, now=now, grace_seconds=5.0)
    assert await TASKS_QUEUE.at().length(server) == 0 == await TASKS_PAYLOAD.at().size(server)
    dead = (await TASKS_DEAD.at().all(server))["t"]
    assert dead.attempts == 2


async def test_time_of_a_wrong_clock_does_not_put_reclaiming_off(server: Valkey) -> None:
    term = await elected(server)
    await steps.schedule(server, Task("t", "job", {}, 0.0, 0.0))
    await steps.promote(server, term.value, 10, now=1.0)
    await steps.take_now(server)
    await steps.reclaim(server, term.value, now=99_999.0, grace_seconds=5.0)
    await steps.reclaim(server, term.value, now=10.0, grace_seconds=5.0)
    assert await TASKS_ORPHANS.at().score(server, "t") == 10.0
    found = await steps.reclaim(server, term.value, now=15.0, grace_seconds=5.0)
    assert found is not None and found.returned == 1


async def test_late_claim_leaves_the_task_to_the_one_who_has_it(server: Valkey) -> None:
    """A worker that slept between taking and claiming, while the task was put back and taken by another."""
    term = await elected(server)
    await steps.schedule(server, Task("t", "job", {}, 0.0, 0.0))
    await steps.promote(server, term.value, 10, now=1.0)
    assert await steps.take_now(server) == b"t"
    for now in (10.0, 20.0):
        await steps.reclaim(server, term.value, now=now, grace_seconds=5.0)
    assert await steps.claim(server, "t", "late:1", 30.0) is Refusal.TAKEN
    assert await steps.take_now(server) == b"t"
    late = await steps.claim(server, "t", "late:1", 30.0)
    assert isinstance(late, Claim), "first come, first served"
    assert await steps.claim(server, "t", "other:1", 30.0) is Refusal.TAKEN
    assert await TASKS_PROCESSING.at().range(server) == ["t"], "the copy of the one who works on it stays"
    assert await steps.complete(server, late)


async def test_copy_that_another_program_pushed_is_removed(server: Valkey) -> None:
    term = await elected(server)
    await steps.schedule(server, Task("t", "job", {}, 0.0, 0.0))
    await steps.promote(server, term.value, 10, now=1.0)
    held = await taken(server)
    await TASKS_QUEUE.at().push_left(server, "t", "stranger")
    assert await steps.take_now(server) == b"t"
    assert await steps.claim(server, "t", "w:2", 30.0) is Refusal.TAKEN
    assert await steps.take_now(server) == b"stranger"
    assert await steps.claim(server, "stranger", "w:3", 30.0) is Refusal.DROPPED
    assert await TASKS_PROCESSING.at().range(server) == ["t"]
    assert await steps.complete(server, held)


async def test_due_id_without_a_task_is_counted_and_dropped(server: Valkey) -> None:
    term = await elected(server)
    await TASKS_SCHEDULED.at().add(server, "stray", 1.0)
    assert await steps.promote(server, term.value, 10, now=2.0) == steps.Promoted(0, 1, None)


async def test_fenced_leader_moves_nothing(server: Valkey) -> None:
    old = await elected(server)
    await steps.schedule(server, Task("t", "job", {}, 0.0, 0.0))
    await LEADER.reference.delete(server)
    new = await elected(server, "two")
    assert new.epoch > old.epoch
    assert await steps.promote(server, old.value, 10, now=1.0) is None
    assert await steps.reclaim(server, old.value, now=1.0, grace_seconds=5.0) is None
    assert await TASKS_SCHEDULED.at().size(server) == 1


async def test_fields_of_another_program_and_every_byte_of_the_arguments_stay(server: Valkey) -> None:
    raw = (b'{ "extra": {"attempts": 9, "list": []}, "id":"t", "type":"job", "args":{"n":123456789012345678901,'
           b'"e":[],"q":"\\"}"}, "run_at":1, "created_at":1 , "last_error" : "old\\\\" }')
    await server.run(("HSET", TASKS_PAYLOAD.at().name(server.layout), "t", raw), int)
    await TASKS_QUEUE.at().push_left(server, "t")
    held = await taken(server)
    assert await steps.fail(server, held, "new", 5.0) is Failed.AGAIN
    changed = await server.run(("HGET", TASKS_PAYLOAD.at().name(server.layout), "t"), bytes)
    assert changed == raw.replace(b' "old\\\\" }', b'"new","attempts":1}')
    task = msgspec.json.decode(changed, type=Task)
    assert task.attempts == 1 and task.last_error == "new"


async def test_what_is_no_task_is_kept_among_the_dead(server: Valkey) -> None:
    await server.run(("HSET", TASKS_PAYLOAD.at().name(server.layout), "t", b"\xff{nonsense"), int)
    await TASKS_QUEUE.at().push_left(server, "t")
    held = await taken(server)
    assert await steps.fail(server, held, "does not decode", 5.0) is Failed.DEAD
    dead = (await TASKS_DEAD.at().all(server))["t"]
    assert dead.args == {"raw": "\\xff{nonsense"} and dead.last_error == "does not decode"


# -- the client --------------------------------------------------------------------------------------------------------


async def test_same_id_makes_one_task(server: Valkey) -> None:
    clock = at_time()
    scheduler = Scheduler(server, BOOK, clock)
    first = await scheduler.schedule(greet, {"name": "Ada"}, delay_seconds=60, task_id="greet:ada")
    assert (first.id, first.outcome) == ("greet:ada", Scheduled.NEW)
    again = await scheduler.schedule(greet, {"name": "Bob"}, delay_seconds=10, task_id="greet:ada")
    assert again.outcome is Scheduled.EXISTS
    later = await scheduler.schedule(greet, {"name": "Cy"}, at=1070, task_id="greet:ada", if_known=IfKnown.EARLIER)
    assert later.outcome is Scheduled.EXISTS
    sooner = await scheduler.schedule(greet, {"name": "Di"}, at=1030, task_id="greet:ada", if_known=IfKnown.EARLIER)
    assert sooner.outcome is Scheduled.REPLACED
    same = await scheduler.schedule(greet, {"name": "Ed"}, at=1030, task_id="greet:ada", if_known=IfKnown.EARLIER)
    assert same.outcome is Scheduled.EXISTS
    view = await scheduler.find("greet:ada")
    assert view is not None and (view.state, view.due_at) == (TaskState.SCHEDULED, 1030)
    assert view.task == Task("greet:ada", "tests.greet", {"name": "Di"}, 1030, 1000)
    await scheduler.schedule("tests.greet", {"name": "Eve"}, at=1500, task_id="greet:ada", if_known=IfKnown.REPLACE)
    assert [(each.task.args, each.due_at) for each in await scheduler.upcoming()] == [({"name": "Eve"}, 1500)]


async def test_task_is_seen_in_each_of_its_states(server: Valkey) -> None:
    clock = at_time()
    scheduler = Scheduler(server, BOOK, clock)
    one = await scheduler.schedule(greet, {"name": "Ada"}, delay_seconds=5, max_attempts=1)
    assert one.id.startswith("task_")

    async def state() -> TaskState | None:
        view = await scheduler.find(one.id)
        return view.state if view else None

    assert await state() is TaskState.SCHEDULED
    term = await elected(server)
    await steps.promote(server, term.value, 10, now=1005.0)
    assert await state() is TaskState.READY
    held = await taken(server, "w:1")
    view = await scheduler.find(one.id)
    assert view is not None and (view.state, view.holder) == (TaskState.PROCESSING, "w:1")
    assert await steps.fail(server, held, "broken", 0.0) is Failed.DEAD
    assert await state() is TaskState.DEAD
    assert [task.last_error for task in await scheduler.dead()] == ["broken"]
    overview = await scheduler.overview()
    assert (overview.scheduled, overview.ready, overview.processing, overview.dead) == (0, 0, 0, 1)
    assert overview.leader == term.value and overview.next_at is None and not overview.paused
    assert await scheduler.revive(one.id, delay_seconds=3) is Revived.REVIVED
    assert (await scheduler.overview()).next_at == 1003
    assert await scheduler.revive(one.id) is Revived.UNKNOWN
    revived = await scheduler.find(one.id)
    assert revived is not None and revived.task.attempts == 0
    assert await scheduler.cancel(one.id) is Cancelled.CANCELLED
    assert await state() is None
    assert await scheduler.cancel(one.id) is Cancelled.UNKNOWN


async def test_dead_task_can_be_forgotten(server: Valkey) -> None:
    scheduler = Scheduler(server, BOOK, at_time())
    await TASKS_DEAD.at().set(server, "t", Task("t", "job", {}, 1.0, 1.0))
    assert await scheduler.discard("t") and not await scheduler.discard("t")


async def test_cancelled_task_can_be_scheduled_anew_though_it_still_lies_in_the_queue(server: Valkey) -> None:
    scheduler, term = Scheduler(server, BOOK, at_time()), await elected(server)
    await scheduler.schedule(greet, {"name": "Ada"}, task_id="t")
    await steps.promote(server, term.value, 10, now=1000.0)
    assert await scheduler.cancel("t") is Cancelled.CANCELLED
    assert (await scheduler.schedule(greet, {"name": "Bob"}, delay_seconds=9, task_id="t")).outcome is Scheduled.NEW
    assert await TASKS_QUEUE.at().length(server) == 0
    view = await scheduler.find("t")
    assert view is not None and view.due_at == 1009 and not view.task.cancelled


async def test_replacing_leaves_alone_what_runs(server: Valkey) -> None:
    scheduler, term = Scheduler(server, BOOK, at_time()), await elected(server)
    await scheduler.schedule(greet, {"name": "Ada"}, task_id="t")
    await steps.promote(server, term.value, 10, now=1000.0)
    moved = await scheduler.schedule(greet, {"name": "Bob"}, task_id="t", if_known=IfKnown.REPLACE)
    assert moved.outcome is Scheduled.REPLACED, "one that is due and waits can be replaced"
    await steps.promote(server, term.value, 10, now=1000.0)
    held = await taken(server)
    late = await scheduler.schedule(greet, {"name": "Cy"}, task_id="t", if_known=IfKnown.REPLACE)
    assert late.outcome is Scheduled.RUNNING
    assert await scheduler.cancel("t") is Cancelled.RUNNING
    assert await steps.fail(server, held, "broken", 2000.0) is Failed.CANCELLED, "it is not tried again"
    assert await scheduler.find("t") is None


async def test_scheduling_shares_the_callers_transaction(server: Valkey) -> None:
    scheduler = Scheduler(server, BOOK, at_time())
    async with server.pipeline(transaction=True) as pipeline:
        first = scheduler.schedule(greet, {"name": "Ada"}, on=pipeline)
        second = scheduler.schedule(greet, {"name": "Bob"}, task_id="t", on=pipeline)
        await pipeline.execute()
    assert (await first).outcome is Scheduled.NEW and (await second).id == "t"
    assert (await scheduler.overview()).scheduled == 2


async def test_nothing_begins_while_paused(server: Valkey) -> None:
    scheduler, term = Scheduler(server, BOOK, at_time()), await elected(server)
    for name in "ab":
        await scheduler.schedule(greet, {"name": name}, task_id=name)
    await steps.promote(server, term.value, 1, now=1000.0)
    assert await steps.take_now(server) == b"a"
    await scheduler.pause()
    assert (await scheduler.overview()).paused
    assert await steps.promote(server, term.value, 10, now=1000.0) == steps.Promoted(0, paused=True)
    assert await steps.claim(server, "a", "w:1", 30.0) is Refusal.PAUSED
    assert await TASKS_QUEUE.at().range(server) == ["a"] and await TASKS_SCHEDULED.at().size(server) == 1
    assert await scheduler.resume() and not await scheduler.resume()
    assert (await taken(server)).id == "a"


@pytest.mark.parametrize(("wrong", "says"), [
    (lambda s: s.schedule("tests.unheard"), "no job named"),
    (lambda s: s.schedule(greet, {"nme": "Ada"}), "it takes"),
    (lambda s: s.schedule(stubborn, at=float("nan")), "a time that exists"),
    (lambda s: s.schedule(stubborn, max_attempts=0), "at least one attempt"),
    (lambda s: s.schedule(stubborn, task_id="x" * (LONGEST_ID + 1)), "1 to 200 characters"),
    (lambda s: s.schedule(stubborn, task_id="line\nbreak"), "cannot be a task's id"),
    (lambda s: s.cancel(""), "1 to 200 characters"),
])
async def test_what_cannot_be_scheduled_is_refused_at_once(
    valkey: Valkey, wrong: Callable[[Scheduler], Awaitable[Any]], says: str
) -> None:
    with pytest.raises(Invalid, match=says):
        await wrong(Scheduler(valkey, BOOK, at_time()))


async def test_a_job_with_a_retry_of_its_own_keeps_it(valkey: Valkey) -> None:
    scheduler = Scheduler(valkey, BOOK, at_time())
    await scheduler.schedule(stubborn, task_id="t")
    await scheduler.schedule("tests.greet", {"name": "Ada"}, task_id="u")
    found = {view.task.id: view.task.max_attempts for view in await scheduler.upcoming()}
    assert found == {"t": 9, "u": 5}


@pytest.mark.parametrize("wrong", [
    {"lease_seconds": 31.0}, {"heartbeat_seconds": 30.0}, {"concurrency": 0}, {"promote_items": 1001},
])
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        SchedulerSettings(**wrong)


def test_all_keys_share_a_slot() -> None:
    names = [
        declaration.at("t").name(Layout.TAGGED) if declaration.template.names
        else declaration.at().name(Layout.TAGGED)  # type: ignore[attr-defined]
        for declaration in Registry([JOBS], Layout.TAGGED)
        if declaration.pattern.startswith(("tasks:", "scheduler:")) and declaration.kind == "key"
    ]
    assert len(names) == 10 and len({key_slot(name) for name in names}) == 1


# -- the leader's work -------------------------------------------------------------------------------------------------


async def until(what: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await what():
            await asyncio.sleep(0.01)


async def test_leader_moves_what_is_due_and_resigns_when_it_stops(server: Valkey) -> None:
    clock, stop = at_time(), asyncio.Event()
    scheduler = Scheduler(server, None, clock)
    for number in range(7):
        await scheduler.schedule("job", at=1000.0, task_id=f"t{number}")
    await scheduler.schedule("job", at=2000.0, task_id="later")
    promoter = Promoter(server, SchedulerSettings(promote_items=3), clock, instance="one")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(promoter.run(stop))
        await until(lambda: is_ready(scheduler, 7))
        assert (await scheduler.overview()).leader == "one:1"
        clock.advance(1000)
        await until(lambda: is_ready(scheduler, 8))
        stop.set()
    assert (await scheduler.overview()).leader == ""


async def is_ready(scheduler: Scheduler, count: int) -> bool:
    return (await scheduler.overview()).ready == count


async def test_leader_whose_key_is_gone_stands_again_with_a_new_epoch(valkey: Valkey) -> None:
    clock, stop = at_time(), asyncio.Event()
    scheduler = Scheduler(valkey, None, clock)
    promoter = Promoter(valkey, SchedulerSettings(promote_seconds=0.05), clock, instance="one")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(promoter.run(stop))

        async def led() -> bool:
            return (await scheduler.overview()).leader == "one:1"

        async def led_again() -> bool:
            return (await scheduler.overview()).leader not in ("", "one:1")

        await until(led)
        await LEADER.reference.delete(valkey)
        await scheduler.schedule("job", task_id="t")
        await until(led_again)
        await until(lambda: is_ready(scheduler, 1))
        stop.set()
