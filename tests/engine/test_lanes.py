"""Lanes of a client: other keys, the same connection."""

import asyncio

from keystead.engine import Valkey
from keystead.keys import Channel, Keyspace, Layout, ListKey
from keystead.patterns import LeasedLock, WorkList, Writes
from keystead.testing.clock import MovableClock

MSG = Keyspace("msg", tag="msg", laned=True)
QUEUE = ListKey(MSG, "queue", str, purpose="a test")
WORK = WorkList(MSG, "work", str, purpose="a test")
NEWS = Channel(MSG, "news", str, purpose="a test")
LOCK = LeasedLock(MSG, "lock", purpose="a test")


async def test_each_lane_has_keys_of_its_own_on_a_cluster(server: Valkey) -> None:
    lanes = [server.lane(number) for number in range(3)]
    for number, lane in enumerate(lanes):
        await QUEUE.at().push_right(lane, str(number))
    found = [await QUEUE.at().range(lane) for lane in lanes]
    if server.layout is Layout.PLAIN:
        assert all(lane is server for lane in lanes) and found == [["0", "1", "2"]] * 3
    else:
        assert lanes[0] is server and found == [["0"], ["1"], ["2"]]
        assert lanes[1].lane(0) is server and lanes[1].lane(2).layout is lanes[2].layout
        assert await server.exists("{msg:2}queue") == 1


async def test_scripts_pipelines_and_waits_work_in_a_lane(server: Valkey) -> None:
    lane = server.lane(1)
    worker = WORK.worker("w")
    await WORK.push(lane, "a")
    async with asyncio.timeout(60):
        [item] = (await worker.wait_and_take(lane, 1, 30, now=1.0)).items
        writes = Writes(lane.layout)
        QUEUE.at().push_right(writes, "done")
        async with lane.pipeline(transaction=True) as block:
            settled = worker.settle(block, item, writes)
            await block.execute()
        assert await settled and await QUEUE.at().range(lane) == ["done"]
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(worker.wait_and_take(lane, 1, 30, now=1.0))
            await asyncio.sleep(0.02)
            await WORK.push(lane, "b")
        assert waiting.result().values == ["b"]
    if server.layout is not Layout.PLAIN:
        assert await WORK.length(server) == 0


async def test_channels_and_locks_are_of_the_lane(server: Valkey) -> None:
    lane = server.lane(1)
    async with asyncio.timeout(60):
        async with lane.hub().subscribe(NEWS.at()) as listener:
            await NEWS.at().publish(lane, "hello")
            message = await anext(aiter(listener))
            assert b"hello" in message.payload
            assert lane.hub().listeners >= 1
        clock = MovableClock(now=1000.0)
        async with LOCK.at().hold(lane, clock, patience_seconds=30):
            other = await LOCK.at().try_acquire(server, now=1000.0)
            assert (other is None) == (server.layout is Layout.PLAIN)


async def test_closing_a_lane_closes_nothing(server: Valkey) -> None:
    lane = server.lane(1)
    if lane is not server:
        await lane.aclose()
    assert await server.ping()
    assert await QUEUE.at().length(lane) == 0
