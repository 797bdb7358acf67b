from collections.abc import AsyncIterator

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import Invalid
from keystead.keys import NO_TTL, IntegerKey, Keyspace, Layout, Registry
from keystead.testing.checks import SlotWatch, check_no_undeclared_keys, undeclared_keys
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

ROOM = Keyspace("room", tag="room")
COUNT = IntegerKey(ROOM, "count:{name}", ttl=NO_TTL, purpose="a number", writers=("test",), readers=("test",))


@pytest.fixture
async def tagged(valkey_server: LocalServer) -> AsyncIterator[Valkey]:
    valkey_server.call("FLUSHALL")
    client = await connect(valkey_server.url, layout=Layout.TAGGED)
    yield client
    await client.aclose()


@pytest.fixture
def watch(valkey_server: LocalServer, tagged: Valkey) -> SlotWatch:
    watch = SlotWatch(valkey_server)
    watch.watch(tagged)
    return watch


async def test_undeclared_keys_are_named(valkey: Valkey, valkey_server: LocalServer) -> None:
    registry = Registry([ROOM])
    await COUNT.at("a").increment(valkey)
    assert undeclared_keys(registry, valkey_server) == []
    check_no_undeclared_keys(registry, valkey_server)
    await valkey.set("stray:2", 1)
    await valkey.set(b"stray:\xff", 1)
    assert undeclared_keys(registry, valkey_server) == [b"stray:2", b"stray:\xff"]
    with pytest.raises(AssertionError, match=r"2 keys .* stray:2, stray:\\xff"):
        check_no_undeclared_keys(registry, valkey_server)


async def test_many_undeclared_keys_are_counted(valkey: Valkey, valkey_server: LocalServer) -> None:
    await valkey.mset({f"stray:{number}": 1 for number in range(2500)})
    with pytest.raises(AssertionError, match=r"2500 keys .* and 2480 more"):
        check_no_undeclared_keys(Registry([ROOM]), valkey_server)


async def test_calls_within_one_tag_pass(watch: SlotWatch, tagged: Valkey) -> None:
    await tagged.mset({"{a}1": 1, "{a}2": 2})
    await tagged.rename("{a}1", "{a}3")
    await tagged.eval("return KEYS[1]", 2, "{a}1", "{a}2")
    await tagged.mget("{a}1", "{b}1")
    async with tagged.pipeline(transaction=True) as pipeline:
        pipeline.set("{a}1", 1).set("{a}2", 1)
        await pipeline.execute()
    async with tagged.pipeline(transaction=False) as pipeline:
        pipeline.set("{a}1", 1).set("{b}2", 1)
        await pipeline.execute()
    await tagged.blpop(["{a}l", "{a}m"], timeout=0.01)
    watch.check()
    assert watch.calls >= 7


async def test_calls_across_slots_are_refused_and_remembered(watch: SlotWatch, tagged: Valkey) -> None:
    with pytest.raises(AssertionError, match=r"RENAME names keys of different slots: {a}1, {b}1"):
        await tagged.rename("{a}1", "{b}1")
    with pytest.raises(AssertionError, match="EVAL names"):
        await tagged.eval("return 1", 2, "{a}1", "{b}1")
    with pytest.raises(AssertionError, match="MULTI names"):
        async with tagged.pipeline(transaction=True) as pipeline:
            pipeline.set("{a}1", 1).set("{b}1", 1)
            await pipeline.execute()
    with pytest.raises(AssertionError, match="MULTI names"):
        await tagged.run_block([("SET", "{a}1", 1), ("SET", "{b}1", 1)], list)
    with pytest.raises(AssertionError, match="BLPOP names"):
        await tagged.blpop(["{a}l", "{b}l"], timeout=0.01)
    with pytest.raises(AssertionError, match=r"5 calls crossed slots: RENAME of {a}1, {b}1;"):
        watch.check()


async def test_plain_layout_cannot_be_watched(valkey: Valkey, watch: SlotWatch) -> None:
    with pytest.raises(Invalid, match=r"layout=Layout.TAGGED"):
        watch.watch(valkey)


@pytest.mark.cluster
async def test_cluster_client_can_be_watched(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    watch = SlotWatch(valkey_cluster.nodes[0])
    watch.watch(cluster)
    await COUNT.at("a").increment(cluster)
    await cluster.set("stray", 1)
    watch.check()
    registry = Registry([ROOM], Layout.TAGGED)
    assert undeclared_keys(registry, *valkey_cluster.primaries()) == [b"stray"]
