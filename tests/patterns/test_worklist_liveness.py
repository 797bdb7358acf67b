"""Signs of life of a worker."""

import asyncio

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError
from keystead.keys import Keyspace
from keystead.patterns.worklist import WorkList
from keystead.patterns.worklist_liveness import LINGER_SECONDS
from keystead.settings import ValkeySettings

LIST = WorkList(Keyspace("living", tag="l"), "living", bytes, alive_seconds=3.0, purpose="a test")


async def marks(valkey: Valkey) -> int:
    return await valkey.run(("EXISTS", LIST.alive_key.at("w").name(valkey.layout)), int)


async def listed(valkey: Valkey) -> set[str]:
    return set(await LIST.workers_key.at().members(valkey))


async def gone(valkey: Valkey) -> None:
    left_ms = await valkey.pttl(LIST.alive_key.at("w").name(valkey.layout))
    assert left_ms == -2 or 0 <= left_ms <= LINGER_SECONDS * 1000, "sooner than it would have expired by itself"
    async with asyncio.timeout(20):
        while await marks(valkey):
            await asyncio.sleep(0.01)


async def test_wait_that_is_broken_off_leaves_nothing_stranded(server: Valkey) -> None:
    """Whatever a cancelled wait still received is found by whoever adopts."""
    for _ in range(20):
        worker = LIST.worker("w")
        async with worker.alive(server):
            waiting = asyncio.create_task(worker.wait_and_take(server, 5, 10, now=1.0))
            await asyncio.sleep(0.002)
            pushing = asyncio.create_task(LIST.push_raw(server, b"x"))
            waiting.cancel()
            await asyncio.gather(waiting, pushing, return_exceptions=True)
    found = 0
    async with asyncio.timeout(30):
        while found < 20:
            await LIST.adopt(server, now=1.0)
            found = await LIST.length(server) + await LIST.dead.length(server)
            await asyncio.sleep(0.02)
    assert found == 20


async def test_mark_is_kept_while_the_block_runs_and_gone_after(server: Valkey) -> None:
    mark = LIST.alive_key.at("w").name(server.layout)
    async with LIST.worker("w").alive(server):
        first_end = await server.pexpiretime(mark)
        async with asyncio.timeout(20):
            while await server.pexpiretime(mark) <= first_end:
                assert await marks(server) == 1
                await asyncio.sleep(0.05)
        assert await listed(server) == {"w"}
    await gone(server)
    assert await listed(server) == {"w"}, "a wait that was broken off may still have brought something"
    await LIST.adopt(server, now=1.0)
    assert await listed(server) == set()


async def test_worker_that_leaves_something_behind_stays_listed(server: Valkey) -> None:
    await LIST.push_raw(server, b"x")
    worker = LIST.worker("w")
    with pytest.raises(RuntimeError, match="broken"):
        async with worker.alive(server):
            await worker.take(server, 1, now=1.0)
            raise RuntimeError("broken")
    await gone(server)
    assert await listed(server) == {"w"}
    assert (await LIST.adopt(server, now=1.0)).items == 1


async def test_beating_goes_on_after_the_server_was_away(valkey: Valkey, fault_proxy) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=1.0))
    try:
        async with LIST.worker("w").alive(client):
            await proxy.refuse()
            proxy.cut()
            async with asyncio.timeout(40):
                while await marks(valkey):
                    await asyncio.sleep(0.02)
                await proxy.restore()
                while not await marks(valkey):
                    await asyncio.sleep(0.02)
    finally:
        await client.aclose()


async def test_block_ends_as_it_would_when_the_server_is_away(valkey: Valkey, fault_proxy) -> None:
    """The sign expires by itself; an error of leaving would hide the block's own."""
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=0.5))
    try:
        with pytest.raises(RuntimeError, match="broken"):
            async with LIST.worker("w").alive(client):
                await proxy.refuse()
                proxy.cut()
                raise RuntimeError("broken")
    finally:
        await client.aclose()


async def test_default_worker_has_no_signs_of_life(valkey: Valkey) -> None:
    with pytest.raises(DeclarationError, match="give the worker a name"):
        await LIST.worker().beat(valkey)
