"""A server's data at one moment."""

import asyncio

import pytest

from keystead.engine import connect
from keystead.engine.snapshot import (
    Held,
    Moved,
    NotPermitted,
    Snapshot,
    primaries,
    replication_offset,
    server_facts,
    wait_until_idle,
)
from keystead.errors import Invalid


async def taken(snapshot):
    await snapshot.size()
    return b"".join([chunk async for chunk in snapshot.chunks()])


async def test_a_snapshot_holds_what_was_written_before_it_began_and_nothing_else(valkey):
    await valkey.set("before", "1")
    async with Snapshot.open(valkey) as snapshot:
        await wait_until_idle(valkey, 30)
        await snapshot.begin(await replication_offset(valkey), 30)
        await valkey.set("after", "1")
        raw = await taken(snapshot)
    assert raw[:6] == b"VALKEY" and len(raw) == snapshot.bytes
    assert b"before" in raw and b"after" not in raw


async def test_writes_wait_while_they_are_held_and_reads_do_not(server, valkey_server):
    other = await connect(_url(server))
    try:
        nodes = await primaries(other)
        async with Held(nodes, 5) as held:
            writing = asyncio.ensure_future(server.set("a", "1"))
            for _ in range(3):
                await asyncio.sleep(0.05)
                assert await other.get("a") is None
            assert not writing.done() and held.still_holds
        async with asyncio.timeout(20):
            await writing
        assert held.held_seconds >= 0.15
        assert await other.get("a") == b"1"
    finally:
        await other.aclose()


async def test_a_hold_ends_by_itself_when_nobody_releases_it(valkey):
    other = await connect(_url(valkey))
    try:
        await Held(await primaries(other), 0.3).__aenter__()  # and its process dies
        async with asyncio.timeout(20):
            await valkey.set("a", "1")
    finally:
        await other.aclose()


async def test_a_hold_is_bounded(valkey):
    for seconds in (0, 60):
        with pytest.raises(Invalid, match="may be held"):
            Held([valkey], seconds)


async def test_a_snapshot_that_began_before_the_hold_is_refused(valkey):
    async with Snapshot.open(valkey) as snapshot:
        await wait_until_idle(valkey, 30)
        with pytest.raises(Moved, match="already"):
            await snapshot.begin(await replication_offset(valkey) + 1_000_000, 30)


async def test_a_user_who_may_not_have_a_snapshot_is_told_so(valkey, valkey_server):
    rights = ("~*", "&*", "+@all", "-psync", "-sync", "-replconf")
    valkey_server.call("ACL", "SETUSER", "plain", "reset", "on", ">pw", *rights)
    valkey_server.call("ACL", "SETUSER", "quiet", "reset", "on", ">pw", "~*", "&*", "+@all", "-client|pause")
    try:
        first = await connect(f"valkey://plain:pw@127.0.0.1:{valkey_server.port}")
        try:
            with pytest.raises(NotPermitted, match="snapshot"):
                async with Snapshot.open(first) as snapshot:
                    await snapshot.begin(0, 5)
        finally:
            await first.aclose()
        second = await connect(f"valkey://quiet:pw@127.0.0.1:{valkey_server.port}")
        try:
            with pytest.raises(NotPermitted, match="hold writes"):
                async with Held([second], 1):
                    pass
        finally:
            await second.aclose()
    finally:
        valkey_server.call("ACL", "DELUSER", "plain", "quiet")
    await valkey.set("a", "1")


async def test_a_server_says_what_it_saves(valkey):
    assert await wait_until_idle(valkey, 30)
    assert "rdb_bgsave_in_progress" in await server_facts(valkey, "persistence")


def _url(valkey):
    address = valkey.address
    if address.path is not None:
        return f"unix://{address.path}"
    return "cluster://" + ",".join(f"{host}:{port}" for host, port in address.hosts)
