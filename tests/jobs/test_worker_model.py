"""Workers against a plain account: jobs of every kind, workers that come, stop, crash and lose their connections.

Whatever happens, every accepted job ends: it succeeded, is a dead letter, or was called off. In a calm plan each ends
once; in a stormy one a job may run again, and nothing else may be different.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import NotFound
from keystead.jobs import (
    GiveUp,
    Inspection,
    JobBook,
    JobHandle,
    JobRef,
    Jobs,
    Rate,
    Retry,
    RetryLater,
    Worker,
    WorkerSettings,
)
from keystead.jobs.dead_letters import DeadLetters, every
from keystead.jobs.handle import ENDED, BatchHandle
from keystead.jobs.keys import Queue
from keystead.testing.proxy import FaultProxy

from .beside import left_keys, until

QUEUES = ("", "mail")
STEPS = 60
# What stays when every job has ended: what workers tell, and what was asked to be kept.
KEPT = {
    "jobs:totals", "jobs:ended:{status}", "jobs:workers", "jobs:worker:{worker}", "jobs:queues", "jobs:rate:{name}",
    "jobs:job:{uid}", "jobs:batch:{batch}", "jobs:hot:workers", "jobs:hot:dead", "jobs:hot:poison",
    "jobs:processing:{worker}:alive", "jobs:queue:{queue}:job:{uid}", "jobs:queue:{queue}:batch:{batch}",
    "jobs:queue:{queue}:workers",
    "jobs:queue:{queue}:dead", "jobs:queue:{queue}:poison", "jobs:queue:{queue}:processing:{worker}:alive",
    # A wish that came too late is kept for as long as the job could still be met.
    "jobs:cancelled", "jobs:queue:{queue}:cancelled",
}


@dataclass
class Promise:
    """A job that was accepted: how its tries go, and what was wished since."""

    handle: JobHandle
    tries: list[str]
    parents: list[int] = field(default_factory=list)
    unique: str = ""
    kept: bool = True
    called_off: bool = False


@dataclass
class Crew:
    worker: Worker
    task: asyncio.Task[None]
    proxy: FaultProxy
    valkey: Valkey


class Plan:
    """One random plan and the account of it."""

    def __init__(self, valkey: Valkey, seed: int, stormy: bool, proxies: Callable[[], Awaitable[FaultProxy]]) -> None:
        self.valkey, self.proxies, self.stormy = valkey, proxies, stormy
        self.random = random.Random(seed)
        self.promises: dict[int, Promise] = {}
        self.batches: list[tuple[BatchHandle, list[int], int]] = []
        self.runs: Counter[int] = Counter()
        self.successes: Counter[int] = Counter()
        self.too_early: list[str] = []
        self.revived = False
        self.crew: list[Crew] = []
        self.gone: list[Crew] = []
        self.book = JobBook()
        quick = Retry(tries=3, first_seconds=0.01, most_seconds=0.05)
        self.book.register("m.run", self._run, retry=quick)
        self.book.register("m.thread", self._run_in_thread, retry=quick)
        self.book.register("m.limited", self._run, retry=quick, rate=Rate(50, 1.0))
        self.jobs = Jobs(valkey, self.book)
        self.inspection = Inspection(valkey, self.jobs.clock)
        self._tries: dict[int, list[str]] = defaultdict(list)
        self._parents: dict[int, list[int]] = {}
        self._numbers = iter(range(1_000_000))

    # -- what jobs do -----------------------------------------------------------------------------------------------

    def _begin(self, n: int) -> str:
        self.runs[n] += 1
        if not self.revived:
            self.too_early += [f"{n} ran before {one}" for one in self._parents.get(n, ()) if not self.successes[one]]
        return self._tries[n].pop(0) if self._tries[n] else "succeed"

    def _finish(self, n: int, how: str) -> int:
        if how == "fail":
            raise ValueError(f"no {n}")
        if how == "later":
            raise RetryLater(0.02, counts=False)
        if how == "give up":
            raise GiveUp(f"never {n}")
        self.successes[n] += 1
        return n

    async def _run(self, n: int, **told: object) -> int:
        how = self._begin(n)
        await asyncio.sleep(0.3 if how == "slow" else 0.002)
        return self._finish(n, how)

    def _run_in_thread(self, n: int, **told: object) -> int:
        return self._finish(n, self._begin(n))

    # -- steps ------------------------------------------------------------------------------------------------------

    def _a_way(self) -> list[str]:
        return self.random.choice([
            [], [], [], ["slow"], ["fail"], ["later"], ["fail", "fail"], ["fail"] * 3, ["give up"],
            ["later", "fail", "slow"],
        ])

    def _name(self) -> str:
        return self.random.choice(["m.run", "m.run", "m.thread", "m.limited"])

    async def enqueue(self) -> None:
        n, chance = next(self._numbers), self.random.random
        queue, tries = self.random.choice(QUEUES), self._a_way()
        wishes: dict[str, object] = {"queue": queue}
        kept = chance() < 0.8
        if kept:
            wishes["keep_seconds"] = 600
        if chance() < 0.3:
            wishes["delay_seconds"] = self.random.choice([0.01, 0.3])
        if chance() < 0.2:
            wishes["unique"] = f"key {self.random.randrange(3)}"
        if chance() < 0.2:
            wishes["done"], kept = True, True
        if chance() < 0.2:
            wishes["on_failure"] = JobRef("m.run", {"n": next(self._numbers)})
        same = [one for one, other in self.promises.items() if other.kept and other.handle.queue == queue]
        parents = self.random.sample(same, min(len(same), self.random.choice([0, 0, 1, 2])))
        if parents:
            wishes["after"], kept = [self.promises[one].handle for one in parents], True
        self._tries[n], self._parents[n] = list(tries), parents
        unique = str(wishes.get("unique", ""))
        holders = [one for one in self.promises.values() if unique and one.unique == unique + queue]
        handle = await self.jobs.options(**wishes).enqueue(self._name(), n=n)  # type: ignore[arg-type]
        if handle.is_new:
            self.promises[n] = Promise(handle, tries, parents, unique and unique + queue, kept)
            for one in holders:
                state = await one.handle.state()
                assert self.revived or not one.kept or (state and state.status in ENDED), "two jobs have a unique key"
        else:
            assert handle.uid in {one.handle.uid for one in holders}

    async def enqueue_many(self) -> None:
        numbers = [next(self._numbers) for _ in range(20)]
        queue = self.random.choice(QUEUES)
        for n, uid in zip(numbers, await self.jobs.options(queue=queue).enqueue_many(
            "m.run", ({"n": n} for n in numbers)
        ), strict=True):
            self.promises[n] = Promise(self.jobs.handle(uid, queue), [], kept=False)

    async def enqueue_batch(self) -> None:
        numbers, then = [next(self._numbers) for _ in range(self.random.randint(1, 5))], next(self._numbers)
        for n in numbers:
            self._tries[n] = self._a_way()
        jobs = self.jobs.options(queue=self.random.choice(QUEUES))
        batch = await jobs.enqueue_batch([(self._name(), {"n": n}) for n in numbers], then=JobRef("m.run", {"n": then}))
        self.batches.append((batch, numbers, then))

    async def call_off(self) -> None:
        if self.promises:
            promise = self.random.choice(list(self.promises.values()))
            promise.called_off |= await promise.handle.cancel()

    async def pause(self) -> None:
        await self.inspection.pause(self.random.choice(QUEUES))

    async def resume(self) -> None:
        await self.inspection.resume(self.random.choice(QUEUES))

    async def revive(self) -> None:
        self.revived = True
        await DeadLetters(self.valkey, Queue(self.random.choice(QUEUES))).retry(every)

    async def start(self, queues: tuple[str, ...] = (), concurrency: int = 0) -> None:
        proxy = await self.proxies()
        valkey = await connect(proxy.url)
        settings = WorkerSettings(
            queues=queues or self.random.choice([("hot",), ("mail",), ("hot", "mail")]),
            concurrency=concurrency or self.random.choice([1, 2, 5, 20]), grace_seconds=self.random.choice([0.05, 5.0]),
        )
        worker = Worker(valkey, self.book, settings)
        self.crew.append(Crew(worker, asyncio.create_task(worker.run()), proxy, valkey))

    async def stop(self) -> None:
        if self.crew:
            crew = self.crew.pop(self.random.randrange(len(self.crew)))
            crew.worker.stop()
            self.gone.append(crew)

    async def blink(self) -> None:
        """A worker loses its connections, and the answers that were under way."""
        if self.stormy and self.crew:
            self.random.choice(self.crew).proxy.cut()

    async def crash(self) -> None:
        """A worker reaches nobody any more, and its time is over at once."""
        if not self.stormy or not self.crew:
            return
        crew = self.crew.pop(self.random.randrange(len(self.crew)))
        await crew.proxy.refuse()
        crew.proxy.cut()
        crew.task.cancel()
        self.gone.append(crew)
        for queue in QUEUES:
            work = Queue(queue).work
            mark = work.alive_key.at(**{**work.arguments, "worker": crew.worker.name})
            await self.valkey.run(("DEL", mark.name(self.valkey.layout)), int)

    async def follow(self) -> None:
        """Take some steps by chance, then let everything come to its end."""
        steps = [*[self.enqueue] * 6, self.enqueue_many, self.enqueue_batch, self.call_off, self.call_off, self.pause,
                 self.resume, self.resume, self.revive, self.start, self.start, self.stop, self.blink, self.crash]
        for _ in range(STEPS):
            if len(self.crew) > 3:
                await self.stop()
            await self.random.choice(steps)()
            await asyncio.sleep(self.random.choice([0, 0, 0.005, 0.05]))
        for queue in QUEUES:
            await self.inspection.resume(queue)
        await self.start(("hot", "mail"), 20)
        await until(self._nothing_left, 60)
        for crew in self.crew:
            crew.worker.stop()
        self.gone += self.crew
        async with asyncio.timeout(60):
            ends = await asyncio.gather(*(crew.task for crew in self.gone), return_exceptions=True)
        for crew, end in zip(self.gone, ends, strict=True):
            assert end is None or isinstance(end, asyncio.CancelledError), repr(end)
            if end is None:
                assert crew.worker._free == crew.worker.concurrency and crew.worker.running == 0, "a place is lost"
                assert not any(station.running for station in crew.worker._stations)
            await crew.valkey.aclose()
        assert await self._nothing_left(), "what a worker gave back as it ended must have been served by another"

    async def _nothing_left(self) -> bool:
        """Whether no job lies anywhere, seen at one moment: they move from place to place."""
        async with self.valkey.pipeline(transaction=True) as block:
            for name in QUEUES:
                queue = Queue(name)
                hands = [queue.work.worker(crew.worker.name).purgatory for crew in (*self.crew, *self.gone)]
                for place in (queue.work.queue, queue.given_up, queue.delayed, queue.waiting, *hands):
                    block.run(("EXISTS", place.name(block.layout)), int)
            return not any(await block.execute())

    # -- the account ------------------------------------------------------------------------------------------------

    async def check(self) -> None:
        assert self.too_early == []
        letters: Counter[str] = Counter()
        for name in QUEUES:
            for view in await DeadLetters(self.valkey, Queue(name)).page(0, 10_000):
                assert view.record is not None
                letters[view.record.uid] += 1
        assert set(letters.values()) <= {1}, "a job is a dead letter once"
        for n, promise in self.promises.items():
            await self._check_one(n, promise, bool(letters[promise.handle.uid]))
        for batch, members, then in self.batches:
            progress = await batch.progress()
            assert (progress.total, progress.left) == (len(members), 0)
            if not self.revived and not self.stormy:
                assert progress.failed == sum(not self.successes[n] for n in members)
            assert self.runs[then] == 1 or (self.stormy and self.runs[then] > 1), f"{self.runs[then]} ends of a batch"
            assert all(self.runs[n] for n in members)
        extra = await left_keys(self.valkey) - KEPT
        assert not extra

    async def _check_one(self, n: int, promise: Promise, is_dead: bool) -> None:
        state = await promise.handle.state()
        ok, runs = self.successes[n], self.runs[n]
        if promise.kept:
            assert state is not None and state.status in ENDED, f"{n} did not end: {state}"
            assert (state.status == "failed") == is_dead, f"{n}: {state}"
            if state.status == "succeeded":
                assert ok and state.result == str(n)
            assert state.status != "cancelled" or promise.called_off
        else:
            with pytest.raises(NotFound):
                await promise.handle.wait(1)
        assert ok or is_dead or promise.called_off, f"{n} was lost"
        if not self.stormy:
            assert ok + is_dead <= 1, f"{n} ended twice"
            failures = [how for how in promise.tries if how != "slow"]
            if not self.revived and not promise.called_off and not promise.parents:
                # A worker that stops gives back what takes too long, and it runs from its beginning.
                assert runs >= min(len(failures) + 1, 3) or "give up" in promise.tries
                assert bool(ok) == (promise.tries.count("fail") < 3 and "give up" not in promise.tries)


@pytest.mark.parametrize(("seed", "stormy"), [(seed, seed % 2 == 0) for seed in range(1, 9)])
async def test_every_accepted_job_ends(
    valkey: Valkey, fault_proxy: Callable[[], Awaitable[FaultProxy]], monkeypatch: pytest.MonkeyPatch, seed: int,
    stormy: bool,
) -> None:
    monkeypatch.setattr("keystead.jobs.upkeep.UPKEEP_SECONDS", 0.1)
    monkeypatch.setattr("keystead.jobs.station.GIVE_BACK_SECONDS", 0.2)
    monkeypatch.setattr("keystead.jobs.station.WAIT_SECONDS", 0.2)
    monkeypatch.setattr("keystead.jobs.worker.SUSPECT_SECONDS", 0.1)
    plan = Plan(valkey, seed, stormy, fault_proxy)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plan_ended, plan)
        await plan.follow()
    await plan.check()


async def plan_ended(plan: Plan) -> None:
    for crew in (*plan.crew, *plan.gone):
        crew.task.cancel()
    await asyncio.gather(*(crew.task for crew in (*plan.crew, *plan.gone)), return_exceptions=True)
