"""Which node gets what: single commands, split ones, pipelines, transactions, scripts, blocking reads."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import redis.exceptions

from keystead.engine import AnswerLost, LoginRefused, ServerAway, Valkey, connect
from keystead.engine.cluster import ClusterValkey
from keystead.engine.scan import scan
from keystead.engine.scripts import Script
from keystead.errors import DeclarationError, Invalid
from keystead.keys.layout import Layout
from keystead.keys.slots import key_slot
from keystead.settings import ValkeySettings
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer, free_ports

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

KEYS = [f"k{number}" for number in range(60)]  # they lie on all three primaries


def one_key_per_node(cluster: LocalCluster) -> list[str]:
    found: dict[object, str] = {}
    for key in KEYS:
        found.setdefault(cluster.primary_of(key), key)
    assert len(found) == 3
    return list(found.values())


# -- single commands ---------------------------------------------------------------------------------------------------


async def test_every_key_lies_on_the_node_of_its_slot(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    await asyncio.gather(*(cluster.set(key, key) for key in KEYS))
    assert await asyncio.gather(*(cluster.get(key) for key in KEYS)) == [key.encode() for key in KEYS]
    stored = [node.call("DBSIZE") for node in valkey_cluster.primaries()]
    assert sum(stored) == len(KEYS)
    assert min(stored) > 0


async def test_commands_of_every_shape_reach_their_node(cluster: Valkey) -> None:
    for number in range(12):  # enough tags that a command on any wrong node is sure to be seen
        a, b, c = (f"{{tag{number}}}{name}" for name in "abc")
        await cluster.set(a, 5)
        assert await cluster.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", 1, a, 2) == 7
        assert await cluster.execute_command("OBJECT", "ENCODING", a) == b"int"
        assert await cluster.object("ENCODING", a) == b"int"
        assert await cluster.execute_command("MEMORY", "USAGE", a) > 0
        assert await cluster.memory_usage(a) > 0
        await cluster.bitop("AND", c, a, a)
        assert await cluster.get(c) == b"7"
        await cluster.delete(a, c)
        await cluster.zadd(a, {"x": 1})
        await cluster.zadd(b, {"y": 2})
        assert sorted(await cluster.zunion([a, b])) == [b"x", b"y"]
        assert await cluster.zunionstore(c, [a, b]) == 2
        assert await cluster.zmpop(1, [a], min=True) is not None
        await cluster.delete(a, b, c)
        await cluster.xadd(a, {"f": "v"})
        assert len(await cluster.xread({a: 0})) == 1
        await cluster.xgroup_create(a, "streams", 0)
        assert len(await cluster.xreadgroup("streams", "me", {a: ">"})) == 1
        assert (await cluster.xinfo_stream(a))["length"] == 1
        assert await cluster.execute_command("get", b) is None
        assert await cluster.execute_command(b"EXISTS", a) == 1


async def test_invalid_utf8_and_empty_keys_are_keys_as_any_other(cluster: Valkey) -> None:
    for key in (b"\xff\xfe\x00", b"", b"{}", b"{", "ключ".encode()):
        await cluster.set(key, key)
        assert await cluster.get(key) == key


async def test_commands_over_many_slots_are_split_and_put_together_in_order(cluster: Valkey) -> None:
    await asyncio.gather(*(cluster.set(key, key) for key in KEYS[::2]))
    expected = [key.encode() if place % 2 == 0 else None for place, key in enumerate(KEYS)]
    assert await cluster.mget(KEYS) == expected
    assert await cluster.mget(KEYS[::-1]) == expected[::-1]
    assert await cluster.mget(["k2", "k2"]) == [b"k2", b"k2"]
    assert await cluster.exists(*KEYS) == len(KEYS) // 2
    assert await cluster.exists("k2", "k2") == 2
    assert await cluster.touch(*KEYS) == len(KEYS) // 2
    assert await cluster.delete(*KEYS[:30]) == 15
    assert await cluster.unlink(*KEYS) == 15
    assert await cluster.dbsize() == 0


async def test_mset_is_not_split_and_says_what_to_do(cluster: Valkey) -> None:
    with pytest.raises(redis.exceptions.ClusterCrossSlotError, match=r"keys of MSET lie in different slots.*one tag"):
        await cluster.mset(dict.fromkeys(KEYS, 1))
    assert await cluster.dbsize() == 0
    await cluster.mset({"{a}1": 1, "{a}2": 2})
    assert await cluster.dbsize() == 2


async def test_server_error_is_raised_as_it_is(cluster: Valkey) -> None:
    await cluster.set("k", "text")
    with pytest.raises(redis.exceptions.ResponseError, match="wrong kind"):
        await cluster.lpush("k", 1)
    with pytest.raises(redis.exceptions.ResponseError, match="wrong number of arguments"):
        await cluster.execute_command("GET")
    with pytest.raises(Invalid, match="NOSUCH"):
        await cluster.execute_command("NOSUCH", "k")


async def test_commands_for_the_whole_cluster_reach_every_primary(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    await asyncio.gather(*(cluster.set(key, 1) for key in KEYS))
    assert sorted(await cluster.keys("*")) == sorted(key.encode() for key in KEYS)
    assert await cluster.dbsize() == len(KEYS)
    sha = await cluster.script_load("return 1")
    assert await cluster.script_exists(sha) == [True]
    valkey_cluster.primaries()[1].call("SCRIPT", "FLUSH")
    assert await cluster.script_exists(sha) == [False]
    await cluster.flushall()
    assert [node.call("DBSIZE") for node in valkey_cluster.primaries()] == [0, 0, 0]


async def test_other_commands_without_keys_go_to_any_node(cluster: Valkey) -> None:
    assert await cluster.ping() is True
    assert len(await cluster.time()) == 2
    assert await cluster.eval("return 'x'", 0) == b"x"
    assert (await cluster.info("server"))["server_mode"] == "cluster"


async def test_scan_is_sent_to_nodes_not_to_the_cluster(cluster: Valkey) -> None:
    await asyncio.gather(*(cluster.set(key, 1) for key in KEYS))
    with pytest.raises(Invalid, match=r"keystead\.engine\.scan"):
        await cluster.scan()
    seen = [key async for batch in scan(cluster, match="k*") for key in batch]
    assert sorted(seen) == sorted(key.encode() for key in KEYS)
    nodes = await cluster.nodes()
    assert sum([await node.dbsize() for node in nodes]) == len(KEYS)
    for node in nodes:
        await node.aclose()  # closes nothing that is shared
    assert await cluster.get("k1") == b"1"


# -- pipelines ---------------------------------------------------------------------------------------------------------


async def test_pipeline_over_all_nodes_gives_replies_in_order(cluster: Valkey) -> None:
    async with cluster.pipeline(transaction=False) as pipe:
        for key in KEYS:
            pipe.set(key, key)
            pipe.append(key, "!")
        pipe.ping()
        await pipe.execute()
        for key in KEYS:
            pipe.get(key)
        assert await pipe.execute() == [f"{key}!".encode() for key in KEYS]


async def test_errors_stand_in_their_place(cluster: Valkey) -> None:
    await cluster.set("k1", "text")
    async with cluster.pipeline(transaction=False) as pipe:
        pipe.set("k0", 1)
        pipe.incr("k1")
        pipe.incr("k2")
        pipe.mget("k3", "k4")
        replies = await pipe.execute(raise_on_error=False)
    assert replies[0] is True
    assert isinstance(replies[1], redis.exceptions.ResponseError)
    assert replies[2] == 1
    assert isinstance(replies[3], redis.exceptions.ClusterCrossSlotError)


async def test_transaction_keeps_to_one_slot(cluster: Valkey) -> None:
    async with cluster.pipeline(transaction=True) as pipe:
        pipe.set("{a}1", 1)
        pipe.incr("{a}1")
        pipe.get("{a}1")
        assert await pipe.execute() == [True, 2, b"2"]


async def test_transaction_over_slots_is_refused_before_anything_runs(cluster: Valkey) -> None:
    async with cluster.pipeline(transaction=True) as pipe:
        pipe.set("k1", 1)
        pipe.set("k2", 1)
        with pytest.raises(Invalid, match=r"one slot.*do not share a tag: k1, k2"):
            await pipe.execute()
    assert await cluster.dbsize() == 0


async def test_blocks_inside_a_pipeline_stay_together_and_spread_over_nodes(cluster: Valkey) -> None:
    def second(replies: list[int]) -> int:
        return replies[1]

    async with cluster.pipeline(transaction=False) as pipe:
        wanted = [pipe.run_block([("SET", key, 1), ("INCRBY", key, place)], second) for place, key in enumerate(KEYS)]
        got = [pipe.run(("GET", key), bytes.decode) for key in KEYS]
        await pipe.execute()
    assert [await each for each in wanted] == [1 + place for place in range(len(KEYS))]
    assert [await each for each in got] == [str(1 + place) for place in range(len(KEYS))]
    with pytest.raises(Invalid, match="one slot"):
        await cluster.run_block([("SET", "k1", 1), ("SET", "k2", 1)], list)


async def test_watch_happens_on_the_node_of_its_keys(cluster: Valkey) -> None:
    for key in KEYS[:12]:
        async with cluster.pipeline() as pipe:
            await pipe.watch(key)
            assert await pipe.get(key) is None
            pipe.multi()
            pipe.set(key, 1)
            await pipe.execute()
        async with cluster.pipeline() as pipe:
            await pipe.watch(key)
            await cluster.set(key, "other")
            pipe.multi()
            pipe.set(key, 2)
            with pytest.raises(redis.exceptions.WatchError):
                await pipe.execute()
        assert await cluster.get(key) == b"other"


async def test_watch_keeps_to_one_slot(cluster: Valkey) -> None:
    async with cluster.pipeline() as pipe:
        with pytest.raises(Invalid, match="one slot"):
            await pipe.watch("k1", "k2")
    async with cluster.pipeline() as pipe:
        await pipe.watch("k1")
        with pytest.raises(Invalid, match="one slot"):
            await pipe.watch("k2")
    async with cluster.pipeline() as pipe:
        await pipe.watch("k1")
        pipe.multi()
        pipe.set("k2", 1)
        with pytest.raises(Invalid, match="slot of its watched keys"):
            await pipe.execute()
    assert await cluster.dbsize() == 0


async def test_wait_belongs_into_a_pipeline_of_one_node(cluster: Valkey) -> None:
    async with cluster.pipeline(transaction=False) as pipe:
        pipe.set("{a}1", 1)
        pipe.execute_command("WAIT", 1, 2000)
        assert await pipe.execute() == [True, 1]
    with pytest.raises(Invalid, match="put it into the pipeline"):
        await cluster.wait(1, 100)
    async with cluster.pipeline(transaction=False) as pipe:
        for key in KEYS:
            pipe.set(key, 1)
        pipe.execute_command("WAIT", 1, 2000)
        with pytest.raises(Invalid, match="one node"):
            await pipe.execute()


# -- blocking and scripts ----------------------------------------------------------------------------------------------


async def test_blocking_commands_wait_at_the_right_node_without_delaying_others(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    lists = one_key_per_node(valkey_cluster)
    async with asyncio.TaskGroup() as tasks:
        pops = [tasks.create_task(cluster.blpop([key], timeout=60)) for key in lists]
        stream = tasks.create_task(cluster.xread({"stream": "$"}, block=60_000))
        for node in valkey_cluster.primaries():
            while b"blocked_clients:0" in node.call("INFO", "clients"):
                await asyncio.sleep(0.01)
        async with asyncio.timeout(30):
            assert await asyncio.gather(*(cluster.get(key) for key in KEYS)) == [None] * len(KEYS)
        for key in lists:
            await cluster.rpush(key, "x")
        while not stream.done():
            await cluster.xadd("stream", {"f": "v"})
            await asyncio.sleep(0.01)
    assert [pop.result() for pop in pops] == [(key.encode(), b"x") for key in lists]
    assert len(stream.result()) == 1


def counting_script() -> Script:
    script = Script("tests.engine", "count.lua")
    script.__dict__["text"] = (  # in place of a file
        "#!lua\n-- count: add to a number and return it.\n-- KEYS[1]  string  number    what is counted\n"
        "-- ARGV[1]  int   amount     1..1000\n-- Returns  the sum\n-- Cost     O(1)      Repeat: not safe\n"
        "local number, amount = KEYS[1], tonumber(ARGV[1])\nreturn redis.call('INCRBY', number, amount)\n"
    )
    return script


async def test_scripts_run_by_hash_on_every_node_and_survive_a_flush(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    count = counting_script()
    for round_number in (1, 2, 3):
        calls = [count(cluster, keys=[key], args=[2], decode=int) for key in KEYS]
        assert await asyncio.gather(*calls) == [2 * round_number] * len(KEYS)
        for node in valkey_cluster.primaries():
            assert node.call("SCRIPT", "EXISTS", count.sha) == [1]
        if round_number == 2:
            await cluster.script_flush()


async def test_scripts_in_pipelines_find_their_nodes_and_survive_a_flush(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    count = counting_script()
    for round_number in (1, 2):
        await cluster.script_flush()
        async with cluster.pipeline(transaction=False) as pipe:
            sums = [count(pipe, keys=[key], args=[3], decode=int) for key in KEYS]
            await pipe.execute()
        assert [await each for each in sums] == [3 * round_number] * len(KEYS)
    await cluster.flushall()
    await cluster.script_flush()
    fresh = await connect(valkey_cluster.url)  # has not seen any node run it
    try:
        async with fresh.pipeline(transaction=False) as pipe:
            for key in KEYS:
                count(pipe, keys=[key], args=[3], decode=int)
                pipe.get(key)
            # Each command sees what stood before it, on every node.
            assert await pipe.execute() == [value for _ in KEYS for value in (3, b"3")]
    finally:
        await fresh.aclose()
    with pytest.raises(DeclarationError, match="takes 1 keys"):
        await count(cluster, keys=["k1", "k2"], args=[1])


# -- opening and closing -----------------------------------------------------------------------------------------------


async def test_client_opens_through_any_seed_that_lives(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    dead = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    client = await connect(f"cluster://{dead},127.0.0.1:{valkey_cluster.ports[-1]}")
    try:
        assert client.layout is Layout.TAGGED
        await client.set("k", 1)
        assert await client.get("k") == b"1"
    finally:
        await client.aclose()
    with pytest.raises(ServerAway, match=r"no node of the cluster answered: .*cannot be reached"):
        await connect(f"cluster://{dead}")


async def test_server_that_is_no_cluster_is_named_with_the_address_to_use(valkey_server: LocalServer) -> None:
    valkey_server.ensure_running()
    with pytest.raises(Invalid, match=rf"is not part of a cluster.*valkey://127.0.0.1:{valkey_server.port}"):
        await connect(f"cluster://127.0.0.1:{valkey_server.port}")


async def test_wrong_password_is_told_at_once(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    with pytest.raises(LoginRefused, match="check the user and password"):
        await connect(valkey_cluster.url.replace("cluster://", "cluster://someone:wrong@"))


async def test_closing_leaves_no_task_and_no_connection_behind(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    before = asyncio.all_tasks()
    client = cast(ClusterValkey, await connect(valkey_cluster.url + "?client_name=leaver"))
    await asyncio.gather(*(client.set(key, 1) for key in KEYS))
    async with client.hub().subscribe("plain", sharded=["shard"]), client.pipeline() as pipe:
        await pipe.watch("k1")
        client.topology.refresh_soon()
    popping = asyncio.create_task(client.blpop(["empty"], timeout=30))
    while b"name=leaver" not in valkey_cluster.primary_of("empty").call("CLIENT", "LIST"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await client.aclose()
    with pytest.raises((AnswerLost, ServerAway)):
        await popping
    with pytest.raises(ServerAway, match="closed"):
        await client.get("k1")
    assert asyncio.all_tasks() == before
    for node in valkey_cluster.nodes:
        async with asyncio.timeout(30):
            while b"name=leaver" in node.call("CLIENT", "LIST"):
                await asyncio.sleep(0.01)


async def test_cut_node_wire_heals_and_leaks_no_task(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    await cluster.set("k1", "v")
    before = len(asyncio.all_tasks())
    for _ in range(5):
        valkey_cluster.primary_of("k1").call("CLIENT", "KILL", "TYPE", "normal")
        assert await cluster.get("k1") == b"v"
    async with asyncio.timeout(30):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.02)


async def test_many_commands_with_little_room_are_all_answered(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    valkey_cluster.flush()
    client = await connect(valkey_cluster.url, settings=ValkeySettings(in_flight_bytes=20_000))
    try:
        value = b"x" * 4000
        await asyncio.gather(*(client.set(f"k{number}", value) for number in range(300)))

        async def many() -> list[bytes]:
            async with client.pipeline(transaction=False) as pipe:
                for number in range(300):
                    pipe.append(f"k{number}", b"y")
                    pipe.strlen(f"k{number}")
                return await pipe.execute()

        results = await asyncio.gather(*(many() for _ in range(5)))
        assert sorted(max(each) for each in results) == [4001, 4002, 4003, 4004, 4005]
    finally:
        await client.aclose()


async def test_client_works_under_load_while_the_map_is_refreshed(cluster: Valkey) -> None:
    topology = cast(ClusterValkey, cluster).topology
    stop = asyncio.Event()

    async def worker(number: int) -> int:
        done = 0
        while not stop.is_set():
            key = f"worker{number}:{done}"
            await cluster.set(key, done)
            assert await cluster.get(key) == str(done).encode()
            done += 1
        return done

    before = topology.refreshes
    workers = [asyncio.create_task(worker(number)) for number in range(20)]
    async with asyncio.timeout(60):
        while topology.refreshes < before + 5:
            topology.refresh_soon()
            await asyncio.sleep(0.01)
    stop.set()
    assert sum(await asyncio.gather(*workers)) == await cluster.dbsize()


@pytest.mark.parametrize("make", [lambda c: c.get("k"), lambda c: c.ping(), lambda c: c.dbsize()])
async def test_client_that_was_never_opened_says_so(make: Callable[[Valkey], Awaitable[object]]) -> None:
    from keystead.engine.endpoint import Endpoint

    client = ClusterValkey([Endpoint()], settings=ValkeySettings(), layout=Layout.TAGGED)
    with pytest.raises(ServerAway, match="open"):
        await make(client)
    await client.aclose()


def test_keys_of_the_test_cover_slots_of_all_nodes() -> None:
    assert {key_slot(key.encode()) * 3 // 16384 for key in KEYS} == {0, 1, 2}
