"""Sweep jobs: under the lock once, or again and again without it."""

import asyncio

import pytest

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs import RunFacts, StopReason, SweepJob, SweepRun
from keystead.jobs import sweep_job as module
from keystead.keys import Keyspace, RecordKey
from keystead.patterns import DelayedSet, SmartLock
from keystead.testing.clock import MovableClock

SPACE = Keyspace("attic", tag="attic")
OLD = DelayedSet(SPACE, "attic:old", int, member="a number", purpose="a test")
LOCK = SmartLock(SPACE, "attic:lock", purpose="a test")


class SweepFacts(RunFacts, frozen=True):
    removed: int = 0


RUNS = RecordKey(SPACE, "stats:attic:sweep", SweepFacts, purpose="a test")
NOW = 1_000_000.0


class Sweep(SweepJob):
    lock, runs = LOCK, RUNS
    every_seconds = 0.01
    failures = 0

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        super().__init__(valkey, clock)
        self.swept = asyncio.Event()

    async def sweep(self, run: SweepRun) -> StopReason:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the database is away")
        while (reason := run.reason_to_stop()) is None:
            found = await OLD.claim(self.valkey, 1, now=run.started_at, again_at=run.started_at + 60)
            if not found.items:
                self.swept.set()
                return StopReason.LIST_EXHAUSTED
            run.count("removed", await OLD.cancel(self.valkey, *found.values))
            if isinstance(self.clock, MovableClock):
                self.clock.advance(20)
        return reason


async def test_a_run_holds_the_lock_and_writes_its_hash(server: Valkey) -> None:
    clock = MovableClock(now=NOW)
    await OLD.schedule_many(server, {1: 1.0, 2: 2.0})
    ended = await Sweep(server, clock).run()
    assert ended is not None and (ended.stop_reason, ended.counts) == (StopReason.LIST_EXHAUSTED, {"removed": 2})
    assert await RUNS.at().get(server) == SweepFacts(
        started_at=NOW, finished_at=NOW + 40, running_time=40.0, stop_reason="list_exhausted", removed=2
    )
    async with LOCK.at().hold(server, clock, hostname="jobs-elsewhere"):
        assert await Sweep(server, clock).run() is None


async def test_a_run_ends_when_its_time_is_over(valkey: Valkey) -> None:
    await OLD.schedule_many(valkey, dict.fromkeys(range(10), 1.0))
    ended = await Sweep(valkey, MovableClock(now=NOW)).run()
    assert ended is not None and (ended.stop_reason, ended.counts["removed"]) == (StopReason.TIME_EXHAUSTED, 3)


async def test_a_counter_must_be_declared(valkey: Valkey) -> None:
    with pytest.raises(DeclarationError, match="'swept' is no counter"):
        SweepRun(1.0, {"removed": 0}, lambda: None).count("swept")


async def test_work_ends_when_the_process_is_asked_to(valkey: Valkey) -> None:
    asked: list[bool] = []

    class Asked(Sweep):
        async def sweep(self, run: SweepRun) -> StopReason:
            asked.append(True)
            return run.reason_to_stop() or StopReason.LIST_EXHAUSTED

    job = Asked(valkey, SystemClock())
    job.stopping = lambda: bool(asked)
    async with asyncio.timeout(60):
        await job.work(asyncio.Event())
    assert len(asked) == 1


async def test_what_is_stated_is_not_added_up_over_several_sweeps(
    server: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dated(Sweep):
        stated = frozenset({"removed"})
        sweeps = 0

        async def sweep(self, run: SweepRun) -> StopReason:
            self.sweeps += 1
            if self.sweeps == 3:
                monkeypatch.setattr(module, "RECORD_SECONDS", 0.0)
                stop.set()
            run.counts["removed"] = 20_774
            return StopReason.LIST_EXHAUSTED

    monkeypatch.setattr(module, "RECORD_SECONDS", float("inf"))
    stop = asyncio.Event()
    async with asyncio.timeout(60):
        await Dated(server, SystemClock()).work(stop)
    facts = await RUNS.at().get(server)
    assert facts is not None and facts.removed == 20_774


async def test_work_goes_on_without_the_lock_until_it_is_told_to_stop(
    server: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_SECONDS", 0.01)
    monkeypatch.setattr(module, "RECORD_SECONDS", 0.0)
    job, stop = Sweep(server, SystemClock()), asyncio.Event()
    job.failures = 2
    elsewhere = LOCK.at().hold(server, SystemClock(), hostname="jobs-elsewhere")
    async with asyncio.timeout(60), elsewhere, asyncio.TaskGroup() as tasks:
        tasks.create_task(job.work(stop))
        for number in (1, 2):
            await OLD.schedule(server, number, 1.0)
            while await OLD.size(server):
                await asyncio.sleep(0.01)
        job.swept.clear()
        await job.swept.wait()
        stop.set()
    facts = await RUNS.at().get(server)
    assert facts is not None and facts.removed == 1 and facts.stop_reason == "list_exhausted"
    assert facts.started_at is not None and facts.finished_at is not None
