"""Jobs of many tenants."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, LimitReached
from keystead.jobs import FairJobs, FairWorker, GiveUp, Inspection, JobBook, Jobs, current_job
from keystead.jobs.keys import FAIR
from keystead.patterns import QueueGate


def book(seen: list) -> JobBook:
    async def note(tenant: str, n: int) -> None:
        seen.append((tenant, n))

    async def fail(n: int) -> None:
        seen.append(current_job().uid)
        if len(seen) < 3:
            raise ValueError("not yet")

    async def useless() -> None:
        raise GiveUp("no use")

    found = JobBook()
    found.register("t.note", note)
    found.register("t.fail", fail)
    found.register("t.useless", useless)
    return found


async def served(server: Valkey, found: JobBook, **settings) -> None:
    """Work until nothing is left."""
    worker = FairWorker(server, found, retry_seconds=0.01, **settings)

    async def stop_when_idle() -> None:
        async with asyncio.timeout(60):
            while True:
                counted = await FAIR.length(server)
                if not counted.ready + counted.delayed + counted.leased:
                    break
                await asyncio.sleep(0.05)
        worker.stop()

    await asyncio.gather(worker.run(), stop_when_idle())


async def test_a_quiet_tenant_does_not_wait_for_a_noisy_one(server: Valkey) -> None:
    seen: list = []
    found = book(seen)
    jobs = FairJobs(Jobs(server, found))
    for n in range(100):
        await jobs.enqueue("noisy", "t.note", {"tenant": "noisy", "n": n})
    await jobs.enqueue("quiet", "t.note", {"tenant": "quiet", "n": 0})
    await served(server, found, concurrency=1)
    assert len(seen) == 101 and seen.index(("quiet", 0)) <= 8


async def test_a_failed_job_comes_back_and_a_useless_one_is_given_up(server: Valkey) -> None:
    seen: list = []
    found = book(seen)
    jobs = FairJobs(Jobs(server, found))
    uid = await jobs.enqueue("acme", "t.fail", {"n": 1})
    dead = await jobs.enqueue("acme", "t.useless", {})
    unknown = await jobs.enqueue("acme", "t.unknown", {})
    await served(server, found)
    assert seen == [uid] * 3
    assert {item for item, _ in await FAIR.upkeep.dead(server, "acme")} == {dead, unknown}
    ended = (await Inspection(server, SystemClock()).ended(["fair"])).jobs
    assert {job.uid: (job.name, job.status, job.attempts, job.error) for job in ended} == {
        uid: ("t.fail", "succeeded", 3, ""), dead: ("t.useless", "failed", 1, "GiveUp"),
        unknown: ("t.unknown", "failed", 1, "GiveUp"),
    }


async def test_a_job_whose_tries_are_used_up_is_told_among_those_that_ended(valkey: Valkey) -> None:
    async def bad() -> None:
        raise ValueError("ada@example.org")

    found = JobBook()
    found.register("t.bad", bad)
    await FAIR.configure(valkey, max_attempts=1)
    uid = await FairJobs(Jobs(valkey, found)).enqueue("acme", "t.bad", {})
    await served(valkey, found)
    [job] = (await Inspection(valkey, SystemClock()).ended()).jobs
    assert (job.uid, job.status, job.attempts, job.error) == (uid, "failed", 2, "ValueError")
    assert job.ran_seconds is not None and job.worker


async def test_what_cannot_be_counted_stops_nobody_and_what_ended_is_told(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0

    async def refuse(*given: object, **how: object) -> None:
        nonlocal refused
        refused += 1
        raise ErrorReply("OOM command not allowed when used memory > 'maxmemory'.")

    found, inspection = book([]), Inspection(valkey, SystemClock())
    jobs, worker = FairJobs(Jobs(valkey, found)), FairWorker(valkey, found)
    await jobs.enqueue("acme", "t.note", {"tenant": "acme", "n": 1})
    monkeypatch.setattr("keystead.jobs.fair.count", refuse)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while (await inspection.ended()).total < 1:
            await asyncio.sleep(0.05)
        worker.stop()
        await working
    assert refused


async def test_bad_input_is_refused(server: Valkey) -> None:
    jobs = FairJobs(Jobs(server, book([])))
    with pytest.raises(Invalid, match="unexpected keyword argument"):
        await jobs.enqueue("acme", "t.note", {"tenant": "x", "n": 1, "x": 1})
    with pytest.raises(Invalid):
        await jobs.enqueue("a:b", "t.note", {"tenant": "x", "n": 1})
    await FAIR.set_gate(server, QueueGate(max_shard=1))
    await jobs.enqueue("acme", "t.useless", {})
    with pytest.raises(LimitReached, match="takes no more now"):
        await jobs.enqueue("acme", "t.useless", {})
