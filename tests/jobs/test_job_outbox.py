"""Jobs that follow from a change of another slot: queued with it, delivered once."""

import asyncio
from typing import Any

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, JobOutbox, JobRecord, JobRef, decode_data_raw, job_list
from keystead.jobs.keys import JOBS
from keystead.keys import Exactly, FlagKey, Keyspace, Layout, Registry
from keystead.patterns import Once, Writes, once
from keystead.testing.checks import check_no_undeclared_keys

from ..patterns.crash import crash_points

SPACE = Keyspace("room", tag="room")
OUTBOX = JobOutbox(SPACE, "room:outbox", writers=("tests",))
MARK = FlagKey(SPACE, "room:mark:{uid}", ttl=Exactly(60), purpose="a test")
REF = JobRef("after", {"of": 1})


async def queue(server: Valkey, *refs: JobRef, mark: str = "m", **options: Any) -> Once:
    writes = Writes(server.layout)
    for ref in refs:
        OUTBOX.add(writes, ref, now=5.0, **options)
    return await once(server, MARK.at(mark), writes)


async def jobs(server: Valkey, name: str = "") -> list[JobRecord]:
    return await job_list(name).range(server)


async def test_a_job_reaches_its_queue_exactly_when_the_change_is_made(server: Valkey) -> None:
    rooms = JobRef("ours", {}, ROOMS_QUEUE)
    assert await queue(server, REF, rooms, JobRef("theirs", {}, "slow")) is Once.DONE
    assert await queue(server, REF, rooms) is Once.SEEN
    delivered = await OUTBOX.drain(server, now=6.0)
    assert delivered == (0 if server.layout is Layout.PLAIN else 3)
    [hot], [ours], [theirs] = [await jobs(server, name) for name in ("", ROOMS_QUEUE, "slow")]
    assert (hot.name, hot.kwargs, hot.queued_at) == ("after", {"of": 1}, 5.0) and hot.uid
    assert (ours.name, theirs.name) == ("ours", "theirs")
    assert await OUTBOX.drain(server, now=7.0) == 0


async def test_the_outcome_is_told_unless_there_is_none(server: Valkey) -> None:
    writes = Writes(server.layout)
    OUTBOX.add(writes, REF, {"sent": True}, now=5.0)
    await once(server, MARK.at("m"), writes)
    await OUTBOX.drain(server, now=6.0)
    [told] = await jobs(server)
    assert told.kwargs["of"] == 1 and decode_data_raw(told.kwargs["data_raw"]) == {"sent": True}


async def test_dying_between_any_two_commands_delivers_once(cluster: Valkey) -> None:
    async for mortal in crash_points(cluster):
        await cluster.flushall()
        await queue(cluster, REF, JobRef("theirs", {}, "slow"))
        try:
            await OUTBOX.drain(mortal, now=6.0)  # type: ignore[arg-type]
        except BaseException:
            if not mortal.dead:
                raise
        await OUTBOX.drain(cluster, now=7.0)
        assert [len(await jobs(cluster, name)) for name in ("", "slow")] == [1, 1]
        if not mortal.dead:
            break


async def test_one_uid_is_one_job_on_a_cluster(cluster: Valkey, valkey_cluster: Any) -> None:
    for mark in ("a", "b"):
        assert await queue(cluster, REF, mark=mark, uid="sms_1:success") is Once.DONE
        await OUTBOX.drain(cluster, now=6.0)
    assert [record.uid for record in await jobs(cluster)] == ["sms_1:success"]
    check_no_undeclared_keys(Registry([SPACE, JOBS], layout=cluster.layout), *valkey_cluster.primaries())


async def test_relays_bring_what_comes_until_they_are_stopped(server: Valkey) -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(OUTBOX.relay(server, SystemClock()).work(stop))
        for number in range(20):
            name = ("", ROOMS_QUEUE, "slow")[number % 3]
            await queue(server, JobRef("job", {"number": number}, name), mark=str(number))
        while sum([len(await jobs(server, name)) for name in ("", ROOMS_QUEUE, "slow")]) < 20:
            await asyncio.sleep(0.01)
        stop.set()
    found = [record.kwargs["number"] for name in ("", ROOMS_QUEUE, "slow") for record in await jobs(server, name)]
    assert sorted(found) == list(range(20))


async def test_a_queue_that_cannot_be_named_is_refused(server: Valkey) -> None:
    with pytest.raises(Exception, match="queue"):
        await queue(server, JobRef("job", {}, "a{b}:c"))
