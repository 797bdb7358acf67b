"""Three instances of the scheduler, killed, frozen and stopped at random points under load: every task is done.

``KEYSTEAD_CHAOS_SECONDS=60`` makes it longer; the counts are printed, ``pytest -s`` shows them.
"""

import asyncio
import contextlib
import itertools
import os
import random
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import Unavailable
from keystead.jobs.keys import (
    TASKS_DEAD,
    TASKS_ORPHANS,
    TASKS_PAYLOAD,
    TASKS_PROCESSING,
    TASKS_QUEUE,
    TASKS_SCHEDULED,
)
from keystead.jobs.scheduler import Scheduler, SchedulerOverview
from keystead.jobs.scheduler_steps import Scheduled
from keystead.testing.server import LocalServer

from .programs import PROJECT, Program
from .scheduler_instance import BEGUN, ENDED, QUICK_LEADER

SECONDS = float(os.environ.get("KEYSTEAD_CHAOS_SECONDS", "10"))
INSTANCES = 3
FAULTS = ("kill the leader", "kill a worker", "kill a worker", "stop one", "freeze one")


class Chaos:
    """The instances by name, and what was done to them."""

    def __init__(self, nursery: Program, valkey: Valkey) -> None:
        self._nursery, self._valkey = nursery, valkey
        self.pids: dict[str, int] = {}
        self.all_pids: list[int] = []
        self.done: Counter[str] = Counter()
        self.rng = random.Random(9)

    async def begin_one(self) -> None:
        assert self._nursery.process.stdin is not None
        number = len(self.all_pids) + 1
        self._nursery.process.stdin.write(f"instance-{number}\n".encode())
        _, name, pid = await self._nursery.hears("born", number, seconds=60)
        self.pids[name] = int(pid)
        self.all_pids.append(int(pid))

    async def harm(self, fault: str, tasks: asyncio.TaskGroup) -> None:
        leader = (await QUICK_LEADER.current(self._valkey) or "").rpartition(":")[0]
        if fault == "kill the leader" and leader not in self.pids:
            return  # nobody leads at this moment, or it is frozen
        victim = leader if fault == "kill the leader" else self.rng.choice(sorted(self.pids))
        pid = self.pids.pop(victim)
        self.done[fault] += 1
        if fault == "freeze one":
            os.kill(pid, signal.SIGSTOP)
            tasks.create_task(self._thaw(victim, pid))
        else:
            os.kill(pid, signal.SIGTERM if fault == "stop one" else signal.SIGKILL)
        await self.begin_one()

    async def _thaw(self, name: str, pid: int) -> None:
        """A fourth for a while: it wakes before or after its leases have ended, works on, and is killed."""
        await asyncio.sleep(self.rng.uniform(0.5, 4.0))
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(1.0)
        os.kill(pid, signal.SIGKILL)


@contextlib.asynccontextmanager
async def chaos_of(valkey: Valkey, url: str) -> AsyncIterator[Chaos]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.scheduler_instance", url, cwd=PROJECT, stdin=PIPE, stdout=PIPE
    )
    nursery = Program(process)
    chaos = Chaos(nursery, valkey)
    try:
        yield chaos
    finally:
        for pid in chaos.all_pids if process.returncode is None else ():
            os.kill(pid, signal.SIGKILL)  # the dead too: their pids stay theirs as long as the nursery lives
        await nursery.kill()


async def load(scheduler: Scheduler, rng: random.Random, until: float) -> int:
    """Tasks that are due now or within the next seconds, some scheduled twice; says how many there are."""
    total = 0
    while time.monotonic() < until:
        for number in range(total, total + 20):
            delay = rng.choice((0.0, 0.0, rng.uniform(0.0, 3.0)))
            once = await scheduler.schedule(
                "faults.note", {"number": number}, delay_seconds=delay, task_id=f"note:{number}", max_attempts=10_000
            )
            assert once.outcome is Scheduled.NEW
        total += 20
        await asyncio.sleep(0.1)
    return total


@pytest.mark.slow
async def test_every_task_ends_whoever_is_killed(valkey: Valkey, valkey_server: LocalServer) -> None:
    scheduler = Scheduler(valkey)
    async with chaos_of(valkey, valkey_server.url) as chaos:
        for _ in range(INSTANCES):
            await chaos.begin_one()
        end = time.monotonic() + SECONDS
        async with asyncio.TaskGroup() as tasks:
            loading = tasks.create_task(load(scheduler, chaos.rng, end))
            for turn in itertools.count():
                await asyncio.sleep(chaos.rng.uniform(0.0, 0.6))
                if time.monotonic() >= end and sum(chaos.done.values()) >= len(FAULTS):
                    break
                await chaos.harm(FAULTS[turn] if turn < len(FAULTS) else chaos.rng.choice(FAULTS), tasks)
        total = loading.result()
        quiet_at = time.monotonic()
        async with asyncio.timeout(180):
            while await TASKS_PAYLOAD.at().size(valkey):
                await asyncio.sleep(0.05)
        recovery = time.monotonic() - quiet_at
    overview = await scheduler.overview()
    begun, ended = Counter(await BEGUN.at().range(valkey)), Counter(await ENDED.at().range(valkey))
    report(chaos.done, total, begun, ended, await QUICK_LEADER.epoch.get(valkey) or 0, recovery)
    assert set(ended) == set(range(total)), "every task came to its end"
    await assert_nothing_left(valkey, overview)


async def test_every_task_ends_though_the_server_is_killed() -> None:
    """Whoever gets no answer to scheduling repeats it under the same id."""
    server, total, kills = LocalServer({"appendonly": "yes", "appendfsync": "always"}), 0, 0
    server.start()
    try:
        valkey = await connect(server.url)
        scheduler = Scheduler(valkey)
        async with chaos_of(valkey, server.url) as chaos:
            for _ in range(2):
                await chaos.begin_one()
            while kills < 4:
                async with asyncio.TaskGroup() as tasks:
                    loading = [tasks.create_task(surely(scheduler, number)) for number in range(total, total + 100)]
                    await asyncio.sleep(chaos.rng.uniform(0.0, 0.3))
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.restart)
                total, kills = total + len(loading), kills + 1
            async with asyncio.timeout(180):
                while await TASKS_PAYLOAD.at().size(valkey):
                    await asyncio.sleep(0.05)
        begun, ended = Counter(await BEGUN.at().range(valkey)), Counter(await ENDED.at().range(valkey))
        report(Counter({"kill the server": kills}), total, begun, ended, await QUICK_LEADER.epoch.get(valkey) or 0, 0.0)
        assert set(ended) == set(range(total))
        await assert_nothing_left(valkey, await scheduler.overview())
        await valkey.aclose()
    finally:
        server.stop()


async def surely(scheduler: Scheduler, number: int) -> None:
    while True:
        try:
            await scheduler.schedule(
                "faults.note", {"number": number}, delay_seconds=number % 3 / 5, task_id=f"note:{number}",
                max_attempts=10_000,
            )
            return
        except Unavailable:
            await asyncio.sleep(0.05)


def report(
    done: Counter[str], total: int, begun: Counter[int], ended: Counter[int], epochs: int, recovery: float
) -> None:
    twice = sum(count - 1 for count in ended.values())
    print(f"\n{total} tasks; {dict(done)}; {epochs} terms of leaders; begun {sum(begun.values())} times, "
          f"ended again since the first end was not told: {twice}; all done {recovery:.1f} s after the last harm")


async def assert_nothing_left(valkey: Valkey, overview: SchedulerOverview) -> None:
    assert (overview.scheduled, overview.ready, overview.processing, overview.dead) == (0, 0, 0, 0)
    for key in (TASKS_SCHEDULED, TASKS_QUEUE, TASKS_PROCESSING, TASKS_ORPHANS, TASKS_PAYLOAD, TASKS_DEAD):
        assert not await valkey.exists(key.at().name(valkey.layout)), key.pattern
    assert [key async for key in valkey.scan_iter(match=b"tasks:*", count=1000)] == []
