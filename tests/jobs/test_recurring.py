"""Recurring jobs: what is declared, and loops that queue each due run once, whatever dies."""

import asyncio
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs import recurring_loop
from keystead.jobs.book import JobBook, job
from keystead.jobs.calendar import AnyOf, Calendar, When
from keystead.jobs.cron import cron
from keystead.jobs.inspection import Inspection
from keystead.jobs.inspection_views import RecurringView
from keystead.jobs.keys import JOBS, QUEUES, Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.recurring import RUN_ONCE, Missed, Recurring, RecurringList
from keystead.jobs.recurring_loop import PAUSE_SECONDS, RecurringLoop, Standing
from keystead.jobs.worker import Worker, WorkerSettings
from keystead.keys import Registry
from keystead.testing.clock import MovableClock
from tests.patterns.crash import Died, Mortal, crash_points

from .brute_force import runs_between

PACIFIC, BERLIN = "America/Los_Angeles", "Europe/Berlin"
MINUTELY = Calendar("UTC", seconds=(0,))
HOURLY = Calendar("UTC", minutes=(0,), seconds=(0,))
START = 1_760_000_400  # on a whole hour


@job(name="tests.report")
async def report(*, kind: str = "short", pages: int = 1) -> None:
    """Never run here."""


@job(name="tests.note")
def note(*, due_at: int) -> None:
    """Never run here."""


def entry(name: str = "a", when: When = HOURLY, **more: Any) -> Recurring:
    return Recurring(f"tests.{name}", when, **more)


class Scene:
    """A server, a clock that is moved by hand, and loops on them that serve one queue."""

    def __init__(self, valkey: Valkey, now: float = START, queue: str = "") -> None:
        self.valkey = valkey
        self.queue = Queue(queue)
        self.keys = self.queue.recurring
        self.clock = MovableClock(now=now)

    def loop(self, *jobs: Recurring, version: int = 0, on: Any = None) -> RecurringLoop:
        declared = RecurringList(jobs, version=version, queue=self.queue.name)
        return RecurringLoop(on or self.valkey, declared, clock=self.clock)

    async def queued(self) -> list[tuple[str, int, float]]:
        """Job, time for which it runs and time when it was queued, of everything in the queue."""
        found = []
        for record in await self.queue.work.queue.range(self.valkey):
            head, _, due = record.uid.rpartition("_")
            assert head.startswith("rjob_")
            found.append((record.name.removeprefix("tests."), int(due) - START, record.queued_at - START))
        return found

    async def scores(self) -> dict[str, float]:
        return dict(await self.keys.next.range(self.valkey))

    async def flush(self) -> None:
        for node in await self.valkey.nodes():
            await node.call(("FLUSHALL",))


@pytest.fixture(params=["", "mail"], ids=["hot", "mail"])
def scene(server: Valkey, request: pytest.FixtureRequest) -> Scene:
    return Scene(server, queue=request.param)


# -- declarations ------------------------------------------------------------------------------------------------------


def test_hashes_are_the_same_on_every_machine() -> None:
    first = Recurring(report, Calendar(PACIFIC, hours=(2,), minutes=(0,), seconds=(0,)), {"pages": 2, "kind": "long"})
    assert first.hash == "8620835626024199319"
    assert RecurringList([first, Recurring(report, MINUTELY)]).hash == "11209573008548387331"
    assert 0 <= int(first.hash) < 2**64


def test_identity_is_name_arguments_and_calendar() -> None:
    calendar = Calendar(PACIFIC, hours=(2,), minutes=(0,), seconds=(0,))
    one = Recurring(report, calendar, {"pages": 2, "kind": "long"})
    assert one.hash == Recurring("tests.report", cron("0 2 * * *", PACIFIC), {"kind": "long", "pages": 2}).hash
    assert one.hash == Recurring(report, calendar, {"pages": 2, "kind": "long"}, missed=Missed.skip()).hash
    others = [
        Recurring("tests.other", calendar, {"pages": 2, "kind": "long"}),
        Recurring(report, calendar, {"pages": 3, "kind": "long"}),
        Recurring(report, calendar),
        Recurring(report, Calendar("US/Pacific", hours=(2,), minutes=(0,), seconds=(0,)), {"pages": 2, "kind": "long"}),
        Recurring(report, AnyOf((calendar,)), {"pages": 2, "kind": "long"}),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 6


def test_order_and_content_make_up_the_list() -> None:
    a, b = entry("a"), entry("b")
    assert RecurringList([a, b]).hash == RecurringList([entry("a"), entry("b")], version=9).hash
    assert len({RecurringList(some).hash for some in ([a, b], [b, a], [a], [])}) == 4
    with pytest.raises(DeclarationError, match=r"tests\.a is declared twice"):
        RecurringList([a, b, entry("a")])
    for version in (-1, 1.5, "7"):
        with pytest.raises(DeclarationError, match="whole number from 0"):
            RecurringList(version=version)


def test_what_is_declared_does_not_change_with_the_mapping_that_was_given() -> None:
    kwargs: dict[str, Any] = {"kinds": ["a"]}
    one = entry(kwargs=kwargs)
    kwargs["kinds"].append("b")
    assert msgspec.json.decode(one.record(1, 2.0))["kwargs"] == {"kinds": ["a"]}


@pytest.mark.parametrize(("make", "told"), [
    (lambda: Recurring(report, HOURLY, {"page": 1}), "unexpected keyword argument 'page'"),
    (lambda: Recurring(note, HOURLY), "missing a required argument: 'due_at'"),
    (lambda: Recurring(note, HOURLY, {"due_at": 1}, due_argument="due_at"), "cannot be the due time"),
    (lambda: entry(kwargs={"x": object()}), "cannot be written as JSON"),
    (lambda: entry(kwargs={1: 2}), "names must be text"), (lambda: entry(when="0 2 * * *"), r"cron\(text, zone\)"),
    (lambda: Missed(0), "most from 1 to"), (lambda: Missed.run_all(1001), "most from 1 to"),
    (lambda: Missed.skip(0), "late_seconds > 0"),
    (lambda: RecurringList(queue="a:b"), "text without colons"),
    (lambda: RecurringList([entry("gone")]).check(JobBook.of(report)), "no such job in the book"),
    (lambda: RecurringList([entry("report", kwargs={"x": 1})]).check(JobBook.of(report)), "unexpected keyword"),
])  # fmt: skip
def test_a_mistake_is_refused_where_it_is_written(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        make()


def test_a_job_is_told_for_which_time_it_runs() -> None:
    one = Recurring(note, HOURLY, due_argument="due_at")
    RecurringList([one]).check(JobBook.of(note))
    record = msgspec.json.decode(one.record(START, START + 0.5), type=JobRecord)
    assert record == JobRecord("tests.note", {"due_at": START}, START + 0.5, f"rjob_{one.hash}_{START}")


@pytest.mark.parametrize(("missed", "late", "runs"), [
    (RUN_ONCE, 0, [0]), (RUN_ONCE, 59, [0]), (RUN_ONCE, 600, [600]),
    (Missed.skip(30), 0, [0]), (Missed.skip(30), 30, [0]), (Missed.skip(30), 31, []), (Missed.skip(30), 80, [60]),
    (Missed.skip(30), 91, []), (Missed.skip(60), 119, [60]),
    (Missed.run_all(3), 0, [0]), (Missed.run_all(3), 130, [0, 60, 120]), (Missed.run_all(3), 3600, [3480, 3540, 3600]),
    (Missed(2, 100), 3590, [3540]), (Missed(2, 100), 3620, [3540, 3600]),
])  # fmt: skip
def test_missed_runs_are_made_up_for_as_declared(missed: Missed, late: float, runs: list[int]) -> None:
    found = entry(when=MINUTELY, missed=missed).due_runs(float(START), START + late)
    assert [run - START for run in found] == runs


@settings(max_examples=100, deadline=None)
@given(
    due=st.integers(0, 3600), late=st.integers(0, 80_000).map(lambda number: number / 4), most=st.integers(1, 20),
    late_seconds=st.none() | st.integers(1, 32_000).map(lambda number: number / 4), step=st.integers(1, 30),
)
def test_missed_runs_are_the_newest_that_are_not_too_late(
    due: int, late: float, most: int, late_seconds: float | None, step: int
) -> None:
    when = Calendar("UTC", minutes=tuple(range(0, 60, step)), seconds=(7,))
    now = START + due + late
    every = sorted({START + due, *(
        second for second in range(START + due, int(now) + 1)
        if second % 60 == 7 and second // 60 % 60 % step == 0
    )})  # fmt: skip
    in_time = [run for run in every if late_seconds is None or now - run <= late_seconds]
    assert entry(when=when, missed=Missed(most, late_seconds)).due_runs(float(START + due), now) == in_time[-most:]


# -- the loop ----------------------------------------------------------------------------------------------------------


async def test_due_run_is_queued_once_and_the_next_one_waits(scene: Scene) -> None:
    one = Recurring(report, HOURLY, {"pages": 3})
    loop = scene.loop(one)
    assert await loop.step() == 5.0, "an hour to go, but what others change is noticed"
    assert await scene.scores() == {one.hash: START + 3600}
    scene.clock.advance(3598)
    assert await loop.step() == pytest.approx(2.0)
    scene.clock.advance(2.25)
    await loop.step()
    await loop.step()
    [record] = await scene.queue.work.queue.range(scene.valkey)
    assert record == JobRecord(
        "tests.report", {"pages": 3}, START + 3600.25, f"rjob_{one.hash}_{START + 3600}"
    )
    assert await Inspection(scene.valkey, scene.clock).recurring() == [
        RecurringView(scene.queue.name or "hot", one.hash, "tests.report", START + 7200, START + 3600)
    ]


async def test_names_are_as_documented_and_declared(scene: Scene) -> None:
    loop = scene.loop(entry(), version=7)
    await loop.step()
    scene.clock.advance(3600)
    await loop.step()
    names, registry = set(), Registry([JOBS], scene.valkey.layout)
    for node in await scene.valkey.nodes():
        for key in await node.call(("KEYS", "*")):
            assert registry.resolve(key)
            names.add(key.decode().rpartition("}")[2])
    stem, *others = ("jobs:queue:mail:recurring", "jobs:queue:mail", "jobs:queues") if scene.queue.name else \
        ("rjobs", "jobs:hot")
    assert names == {stem, *(f"{stem}:{name}" for name in ("hash", "last", "names", "version")), *others}
    assert await scene.keys.hash.get(scene.valkey) == loop.jobs.hash
    assert await scene.keys.version.get(scene.valkey) == f"7:{loop.jobs.hash}"


async def test_list_of_a_queue_never_touches_that_of_another(server: Valkey) -> None:
    """The same entries, other versions, and runs of a job that workers of the other queue do not know."""
    hot, mail, text = (Scene(server, queue=name) for name in ("hot", "mail", "text"))
    assert hot.queue.name == "", "hot is what people call the one without a name"
    hot_loop = hot.loop(entry("a", MINUTELY), entry("b"))
    mail_loop, text_loop = mail.loop(entry("c", MINUTELY), version=9), text.loop(entry("a", MINUTELY), version=2)
    for minute in range(3):
        for scene, loop in ((hot, hot_loop), (mail, mail_loop), (text, text_loop)):
            await loop.step()
            assert loop.standing is Standing.SERVES
            assert await scene.scores() == {
                one.hash: one.when.next_after(scene.clock.now()) for one in loop.jobs
            }
            scene.clock.advance(60)
        assert await hot.queued() == [("a", at * 60, at * 60.0) for at in range(1, minute + 1)]
        assert await mail.queued() == [("c", at * 60, at * 60.0) for at in range(1, minute + 1)]
        assert await text.queued() == [("a", at * 60, at * 60.0) for at in range(1, minute + 1)]
    await text.loop(version=3).step()
    assert await text.scores() == {} and len(await hot.scores()) == 2 and len(await mail.scores()) == 1
    inspection = Inspection(server, hot.clock)
    assert [(view.queue, view.name) for view in await inspection.recurring()] == [
        ("hot", "tests.a"), ("mail", "tests.c"), ("hot", "tests.b")
    ]
    assert [view.queue for view in await inspection.recurring(["mail"])] == ["mail"]


async def test_queue_is_listed_as_long_as_its_list_is_served(scene: Scene) -> None:
    inspection, listed = Inspection(scene.valkey, scene.clock), ["hot", *filter(None, [scene.queue.name])]
    loop = scene.loop(entry())
    await loop.step()
    assert await inspection.queue_names() == listed
    await QUEUES.at().delete(scene.valkey)
    scene.clock.advance(60)
    await loop.step()
    assert await inspection.queue_names() == listed


async def test_names_are_those_of_the_list_in_force(scene: Scene) -> None:
    kept, gone, new = entry("kept"), entry("gone"), Recurring(report, HOURLY)
    await scene.loop(kept, gone, version=1).step()
    assert await scene.keys.names.all(scene.valkey) == {kept.hash: "tests.kept", gone.hash: "tests.gone"}
    await scene.keys.names.set(scene.valkey, kept.hash, "something else")
    await scene.loop(new, kept, version=2).step()
    assert await scene.keys.names.all(scene.valkey) == {kept.hash: "tests.kept", new.hash: "tests.report"}
    await scene.loop(gone, version=1).step()
    assert gone.hash not in await scene.keys.names.all(scene.valkey), "a list that is not in force names nobody"
    await scene.loop(version=3).step()
    assert await scene.keys.names.all(scene.valkey) == {}


async def test_long_absence_does_not_pile_up(scene: Scene) -> None:
    jobs = [entry("once", MINUTELY), entry("skip", MINUTELY, missed=Missed.skip(20)),
            entry("some", MINUTELY, missed=Missed.run_all(3)), entry("old", HOURLY, missed=Missed.skip())]
    await scene.loop(*jobs).step()
    scene.clock.advance(5 * 3600 + 90)
    loop = scene.loop(*jobs)
    await loop.step()
    await loop.step()
    at = 5 * 3600 + 60
    assert Counter(await scene.queued()) == Counter(
        [("once", at, at + 30), ("some", at - 120, at + 30), ("some", at - 60, at + 30), ("some", at, at + 30)]
    )
    assert set((await scene.scores()).values()) == {START + at + 60, START + 6 * 3600}


async def test_any_number_of_loops_queue_each_run_once(scene: Scene) -> None:
    jobs = [entry(f"j{number}", MINUTELY) for number in range(20)]
    loops = [scene.loop(*jobs) for _ in range(6)]
    await asyncio.gather(*(loop.step() for loop in loops))
    for minute in range(1, 6):
        scene.clock.advance(60)
        await asyncio.gather(*(loop.step() for loop in loops))
        expected = Counter((f"j{number}", at * 60, at * 60.0) for number in range(20) for at in range(1, minute + 1))
        assert Counter(await scene.queued()) == expected


async def test_more_due_jobs_than_one_look_shows_are_all_queued(scene: Scene) -> None:
    jobs = [entry(f"j{number}", MINUTELY) for number in range(130)]
    loop = scene.loop(*jobs)
    await loop.step()
    scene.clock.advance(60)
    assert await loop.step() == 0.0
    await loop.step()
    assert len(set(await scene.queued())) == 130


async def test_changed_list_keeps_overdue_runs_and_forgets_what_is_gone(scene: Scene) -> None:
    kept, gone, new = entry("kept"), entry("gone"), entry("new", MINUTELY)
    first = scene.loop(kept, gone, version=1)
    await first.step()
    scene.clock.advance(3600)
    await first.step()
    scene.clock.advance(3605)  # both are overdue when the next version begins
    second = scene.loop(new, kept, version=2)
    await second.step()
    assert [name for name, _, _ in await scene.queued()][2:] == ["kept"]
    assert await scene.scores() == {kept.hash: START + 3 * 3600, new.hash: START + 7260}
    assert (await scene.keys.last.all(scene.valkey)).keys() == {kept.hash}
    assert await first.step() == PAUSE_SECONDS and first.standing is Standing.OLDER


async def test_replaced_loop_notices_when_it_would_queue(scene: Scene) -> None:
    old, new = scene.loop(entry("a", MINUTELY), version=1), scene.loop(entry("a", MINUTELY), entry("b"), version=2)
    scene.clock.advance(30)
    await old.step()
    await new.step()
    scene.clock.advance(30)  # due, and the old one does not look at the list before half a minute later
    assert await old.step() == PAUSE_SECONDS
    assert await scene.queued() == []
    await new.step()
    assert await scene.queued() == [("a", 60, 60.0)]


async def test_older_list_does_not_replace_a_newer_one(scene: Scene) -> None:
    newer, older = scene.loop(entry("a"), version=5), scene.loop(entry("b"), version=4)
    await newer.step()
    for _ in range(3):
        assert await older.step() == PAUSE_SECONDS
        scene.clock.advance(3600)
    assert older.standing is Standing.OLDER and await scene.keys.hash.get(scene.valkey) == newer.jobs.hash
    await scene.keys.version.delete(scene.valkey)
    await older.step()
    assert older.standing is Standing.SERVES, "an operator who goes back deletes the version"


async def test_two_lists_with_one_version_do_not_take_turns(scene: Scene) -> None:
    first, second = scene.loop(entry("a", MINUTELY)), scene.loop(entry("b", MINUTELY))
    await first.step()
    await second.step()
    for _ in range(10):
        scene.clock.advance(60)
        await first.step()
        await second.step()
    assert (first.standing, second.standing) == (Standing.ASIDE, Standing.SERVES), "the later one has its way"
    assert [name for name, _, _ in await scene.queued()] == ["b"] * 10
    scene.clock.advance(300)  # the later one is gone, and its runs are minutes late
    await first.step()
    assert first.standing is Standing.SERVES and (await scene.scores()).keys() == first.jobs.by_hash.keys()


async def test_same_list_under_a_new_version_is_served_by_both(scene: Scene) -> None:
    old, new = scene.loop(entry(when=MINUTELY), version=1), scene.loop(entry(when=MINUTELY), version=2)
    await old.step()
    await new.step()
    scene.clock.advance(60)
    await old.step()
    assert await scene.queued() == [("a", 60, 60.0)]


async def test_damage_is_mended_within_a_minute(scene: Scene) -> None:
    jobs = [entry(f"j{number}") for number in range(4)]
    loop = scene.loop(*jobs)
    await loop.step()
    whole = await scene.scores()
    await scene.keys.next.remove(scene.valkey, jobs[0].hash, jobs[1].hash)
    await scene.keys.next.add(scene.valkey, "12345", START)  # nobody's, and due
    await scene.keys.next.add(scene.valkey, jobs[2].hash, START + 1e8)  # by a clock that was years ahead
    await scene.keys.purgatory.add(scene.valkey, jobs[1].hash, "777")
    await scene.valkey.zadd(scene.keys.next.name(scene.valkey.layout), {b"\xff\xfe": 1})
    await scene.valkey.hset(scene.keys.last.name(scene.valkey.layout), jobs[3].hash, "soon")
    await scene.valkey.set(scene.keys.version.name(scene.valkey.layout), "the newest")
    scene.clock.advance(60)
    await loop.step()
    assert await scene.scores() == whole
    assert await scene.keys.purgatory.size(scene.valkey) == 0


async def test_stranger_among_the_due_is_taken_away_and_holds_nothing_up(scene: Scene) -> None:
    loop = scene.loop(entry(when=MINUTELY))
    await loop.step()
    await scene.keys.next.add(scene.valkey, "12345", START)
    scene.clock.advance(60 - 1e-6)
    await loop.step()
    await loop.step()
    assert (await scene.scores()).keys() == loop.jobs.by_hash.keys()
    scene.clock.advance(1e-6)
    await loop.step()
    assert await scene.queued() == [("a", 60, 60.0)]


async def test_update_of_a_loop_with_a_slower_clock_does_not_bring_a_run_back(scene: Scene) -> None:
    jobs = [entry("a"), entry("b", MINUTELY)]
    ahead, behind = scene.loop(*jobs), scene.loop(*jobs)
    behind.clock = MovableClock(now=START - 0.5)
    await ahead.step()
    scene.clock.advance(3600)
    await ahead.step()
    behind.clock.advance(3600)
    await behind.step()  # its first step: half a second before the hour on its clock
    scene.clock.advance(1)
    await ahead.step()
    assert Counter(await scene.queued()) == Counter([("a", 3600, 3600.0), ("b", 3600, 3600.0)])


async def test_crash_at_any_command_misses_nothing_and_doubles_nothing(scene: Scene) -> None:
    """A loop that begins with overdue jobs dies ever later; another one ends what it began."""
    jobs = [entry("a", MINUTELY), entry("b", HOURLY), entry("c", MINUTELY, missed=Missed.run_all(2))]
    late = [("a", 3600, 3600.5), ("b", 3600, 3600.5), ("c", 3540, 3600.5), ("c", 3600, 3600.5)]
    async for mortal in crash_points(scene.valkey):
        await scene.flush()
        scene.clock = MovableClock(now=START)
        await scene.loop(*jobs).step()
        scene.clock.advance(3600.5)
        try:
            await scene.loop(*jobs, on=mortal).step()
        except Died:
            assert mortal.dead
        await scene.loop(*jobs).step()
        assert Counter(await scene.queued()) == Counter(late)
        assert sorted((await scene.scores()).values()) == [START + 3660, START + 3660, START + 7200]
        if not mortal.dead:
            return


async def test_crash_at_any_command_of_a_change_of_lists_is_mended(scene: Scene) -> None:
    old, new = [entry("a", MINUTELY), entry("b")], [entry("c", MINUTELY), entry("a", MINUTELY)]
    async for mortal in crash_points(scene.valkey):
        await scene.flush()
        scene.clock = MovableClock(now=START)
        first = scene.loop(*old, version=1)
        await first.step()
        scene.clock.advance(60)
        try:
            await scene.loop(*new, version=2, on=mortal).step()
        except Died:
            assert mortal.dead
        await scene.loop(*new, version=2).step()
        await first.step()
        assert await scene.queued() == [("a", 60, 60.0)]
        assert await scene.scores() == {one.hash: START + 120 for one in new}
        if not mortal.dead:
            return


class Interrupted(Mortal):
    """A client that does not die: before its ``at``-th call something else happens."""

    def __init__(self, valkey: Valkey, at: int, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(valkey, -1, after=False)
        self.calls, self.at, self.meanwhile = 0, at, meanwhile

    async def _mortally(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls += 1
        if self.calls == self.at:
            await self.meanwhile()
        return await call()


@pytest.mark.parametrize("older", [False, True])
async def test_what_another_loop_does_between_any_two_commands_is_not_undone(scene: Scene, older: bool) -> None:
    """A run falls due, and another loop queues it, while a loop that began just before it is at any of its commands."""
    jobs = [entry("a", MINUTELY), entry("b", MINUTELY), entry("c", HOURLY)]
    for at in range(1, 100):
        await scene.flush()
        scene.clock = MovableClock(now=START)
        other = scene.loop(*jobs)
        await other.step()
        scene.clock.advance(59.75)

        async def meanwhile(other: RecurringLoop = other) -> None:
            scene.clock.advance(0.5)
            if not older:
                await other.step()
                return
            kind = OlderLoop(scene, other.jobs)
            assert await kind.pop()
            await kind.queue()

        interrupted = Interrupted(scene.valkey, at, meanwhile)
        await scene.loop(*jobs, on=interrupted).step()
        if interrupted.calls < at:  # it has ended before
            assert at > 4
            return
        await other.step()
        assert Counter(await scene.queued()) == Counter([("a", 60, 60.25), ("b", 60, 60.25)]), f"at call {at}"
    pytest.fail("the loop never ended its step")


# -- loops of the older kind -------------------------------------------------------------------------------------------

POP = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return -1 end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if not first[1] or tonumber(first[2]) > tonumber(ARGV[2]) then return 0 end
redis.call('ZPOPMIN', KEYS[1])
redis.call('SADD', KEYS[3], first[1])
return first
"""
PUT_BACK = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return -1 end
if redis.call('SREM', KEYS[3], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[2])
return 1
"""


class OlderLoop:
    """Pops into purgatory, queues, and puts back: three steps, between which it may die."""

    def __init__(self, scene: Scene, jobs: RecurringList) -> None:
        self.scene, self.jobs, self.held = scene, jobs, ""
        self.keys = [ref.name(scene.valkey.layout) for ref in (scene.keys.next, scene.keys.hash, scene.keys.purgatory)]

    async def pop(self) -> bool:
        now = self.scene.clock.now()
        found = await self.scene.valkey.eval(POP, 3, *self.keys, self.jobs.hash, repr(now))
        if isinstance(found, int):
            return False
        self.held, due = found[0].decode(), int(float(found[1]))
        self.record = self.jobs.by_hash[self.held].record(due, now)
        return True

    async def queue(self) -> None:
        await self.scene.valkey.rpush(self.scene.queue.work.queue.name(self.scene.valkey.layout), self.record)

    async def put_back(self) -> int:
        following = self.jobs.by_hash[self.held].when.next_after(self.scene.clock.now())
        return await self.scene.valkey.eval(PUT_BACK, 3, *self.keys, self.jobs.hash, self.held, following)


async def test_a_loop_of_the_older_kind_shares_the_work(scene: Scene) -> None:
    ours = scene.loop(*(entry(f"j{number}", MINUTELY) for number in range(6)))
    older = OlderLoop(scene, ours.jobs)
    await ours.step()
    for minute in range(1, 8):
        scene.clock.advance(60)
        for _ in range(minute % 5):
            assert await older.pop()
            if minute % 2:
                await scene.loop(*ours.jobs).step()  # begins meanwhile, and takes back what is in purgatory
            await older.queue()
            assert await older.put_back() == (0 if minute % 2 else 1)
            if minute % 2:
                break
        await ours.step()
    assert Counter(await scene.queued()) == Counter(
        (f"j{number}", minute * 60, minute * 60.0) for number in range(6) for minute in range(1, 8)
    )


async def test_list_of_the_older_kind_is_replaced_again(scene: Scene) -> None:
    """That kind knows no versions, so nothing tells whose list is newer, and nobody else would run ours."""
    ours = scene.loop(entry(when=MINUTELY))
    await ours.step()
    await scene.keys.next.remove(scene.valkey, *ours.jobs.by_hash)
    await scene.keys.next.add(scene.valkey, "4711", START + 3600)
    await scene.keys.hash.set(scene.valkey, "4712")
    scene.clock.advance(61)
    await ours.step()
    assert ours.standing is Standing.SERVES and (await scene.scores()).keys() == ours.jobs.by_hash.keys()


async def test_what_a_dead_loop_of_the_older_kind_popped_runs_again_at_its_next_time(scene: Scene) -> None:
    ours = scene.loop(entry(when=MINUTELY))
    await ours.step()
    scene.clock.advance(60)
    older = OlderLoop(scene, ours.jobs)
    assert await older.pop()
    assert await scene.keys.purgatory.size(scene.valkey) == 1
    for _ in range(3):
        scene.clock.advance(60)
        await ours.step()
    assert [due for _, due, _ in await scene.queued()] == [180, 240], "the popped one is lost, as that kind loses it"


# -- two years ---------------------------------------------------------------------------------------------------------

JOBS_OF_YEARS = [
    entry("skipped", Calendar(PACIFIC, hours=(2,), minutes=(30,), seconds=(0,)), missed=Missed.run_all(1000)),
    entry("repeated", Calendar(PACIFIC, hours=(1,), minutes=(30,), seconds=(0,))),
    entry("berlin", Calendar(BERLIN, hours=(2,), minutes=(0, 45), seconds=(0,)), missed=Missed.run_all(1000)),
    entry("quarters", Calendar(BERLIN, hours=(0, 6, 12, 18), minutes=(0,), seconds=(0,)), missed=Missed.skip(7200)),
    entry("monthly", Calendar(PACIFIC, days_of_month=(31,), hours=(0,), minutes=(0,), seconds=(0,))),
    entry("rhythm", Calendar(PACIFIC, days_of_week=("sun",), hours=tuple(range(24)), minutes=(15,), seconds=(0,)),
          missed=Missed.run_all(5)),
]  # fmt: skip


class Years:
    """Runs, deaths and deployments in the order of time, and what the queue must hold at the end."""

    def __init__(self, valkey: Valkey, days: int, changes: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.first = round(datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")).timestamp())
        self.last = self.first + days * 86400
        self.scene = Scene(valkey, self.first)
        self.runs = {one.name: runs_between(one.when, self.first + 900, self.last, 900) for one in JOBS_OF_YEARS}
        self.expected: Counter[tuple[str, int, float]] = Counter()
        self.handled = self.first
        self.version = 1
        self.changes = changes
        self.deaths = self.outages = self.changed = 0
        self.loops = [self.loop(), self.loop()]

    def loop(self, on: Any = None) -> RecurringLoop:
        return self.scene.loop(
            *JOBS_OF_YEARS[self.version % 6:], *JOBS_OF_YEARS[:self.version % 6],
            entry(f"v{self.version}", Calendar("UTC", months=(2,), days_of_month=(29,), **_NOON)),
            version=self.version, on=on,
        )

    def expect(self, now: float) -> None:
        """What must be queued by loops that are there at ``now`` and were last there at ``handled``."""
        for one in JOBS_OF_YEARS:
            runs = self.runs[one.name]
            due = runs[bisect_right(runs, self.handled):bisect_right(runs, now)]
            late = one.missed.late_seconds
            due = [run for run in due if late is None or now - run <= late][-one.missed.most:]
            self.expected.update((one.name.removeprefix("tests."), run - START, now - START) for run in due)
        self.handled = int(now)

    async def live(self) -> None:
        times = sorted({run for runs in self.runs.values() for run in runs})
        changes = sorted(self.chance.randrange(self.first, self.last) for _ in range(self.changes))
        # Half of all deaths come at the very moment when something is due.
        changes = [self.chance.choice(times) if self.chance.random() < 0.5 else at + 0.5 for at in changes]
        events = sorted([*((at, False) for at in times), *((at, True) for at in changes)])
        away_until = 0.0
        await self.step()
        for at, is_change in events:
            if at < away_until:
                continue
            self.scene.clock.advance(at - self.scene.clock.now())
            self.changed += is_change
            if is_change and at % 1 and self.chance.random() < 0.2:  # all are gone for a while
                away_until = at + self.chance.choice([600, 7200, 86400, 250_000])
                self.loops = [self.loop(), self.loop()]
                self.outages += 1
                continue
            if is_change:
                await self.change()
            await self.step()
            self.expect(at)

    async def change(self) -> None:
        """One loop dies at some command of its step, and a new one begins; sometimes it has a new list."""
        place = self.chance.randrange(2)
        mortal = Mortal(self.scene.valkey, self.chance.randint(1, 9), after=self.chance.random() < 0.5)
        dying = self.loop(on=mortal) if self.chance.random() < 0.5 else self.loops[place]
        dying._valkey = mortal  # type: ignore[assignment]
        try:
            await dying.step()
        except Died:
            self.deaths += 1
        self.version += self.chance.random() < 0.2
        self.loops[place] = self.loop()

    async def step(self) -> None:
        order = [*self.loops]
        self.chance.shuffle(order)
        for loop in order:
            await loop.step()
        if all(loop.jobs.version < self.version for loop in order):
            raise AssertionError("a deployment leaves at least one new loop")


_NOON: dict[str, Any] = {"hours": (12,), "minutes": (0,), "seconds": (0,)}


async def test_two_years_with_a_thousand_changes_of_loops_miss_and_double_nothing(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both changes of the clock in both years; every run is queued as its policy says and at the time it should be."""
    monkeypatch.setattr(recurring_loop, "CHECK_SECONDS", 7 * 86400.0)
    years = Years(valkey, 730, 1300, seed=20260308)  # some fall into times when nobody is there
    await years.live()
    assert years.changed >= 1000 and years.deaths > 200 and years.outages > 50
    queued = Counter(await years.scene.queued())
    assert queued - years.expected == Counter(), "queued and not expected"
    assert years.expected - queued == Counter(), "expected and not queued"
    assert sum(queued.values()) > 6000 and max(queued.values()) == 1


async def test_two_months_with_changes_of_loops_on_both_shapes(server: Valkey) -> None:
    years = Years(server, 100, 120, seed=7)  # through both changes of March
    await years.live()
    assert years.deaths > 10 and years.outages > 5
    assert Counter(await years.scene.queued()) == years.expected


# -- running -----------------------------------------------------------------------------------------------------------


async def test_loop_runs_by_itself_until_it_is_stopped(server: Valkey) -> None:
    every_second = entry("beat", Calendar("UTC", seconds=tuple(range(60))))
    loops = [RecurringLoop(server, RecurringList([every_second])) for _ in range(2)]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(loop.run())
        while await Queue().work.queue.length(server) < 3:
            await asyncio.sleep(0.05)
        for loop in loops:
            loop.stop()
    records = await Queue().work.queue.range(server)
    assert len({record.uid for record in records}) == len(records)


async def test_loop_goes_on_after_an_error(valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring_loop, "PAUSE_SECONDS", 0.01)
    failing = RecurringLoop(valkey, RecurringList([entry("beat", Calendar("UTC", seconds=tuple(range(60))))]))
    step, errors = failing.step, [Unavailable("away"), RuntimeError("a bug")]

    async def sometimes() -> float:
        if errors:
            raise errors.pop()
        return await step()

    monkeypatch.setattr(failing, "step", sometimes)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(failing.run())
        while not await Queue().work.queue.length(valkey):
            await asyncio.sleep(0.05)
        failing.stop()
    assert not errors


@pytest.mark.parametrize("queue", ["hot", "mail"])
async def test_worker_runs_what_a_loop_queues(valkey: Valkey, queue: str) -> None:
    seen: list[int] = []

    async def beat(*, due_at: int) -> None:
        seen.append(due_at)

    book = JobBook()
    one = Recurring(book.register("tests.beat", beat), Calendar("UTC", seconds=tuple(range(60))), due_argument="due_at")
    loop = RecurringLoop(valkey, RecurringList([one], queue=queue))
    worker = Worker(valkey, book, WorkerSettings(queues=(queue,)))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        running = [group.create_task(loop.run()), group.create_task(worker.run())]
        while len(seen) < 2:
            await asyncio.sleep(0.05)
        loop.stop()
        worker.stop()
    assert all(task.done() for task in running) and seen == sorted(set(seen))
