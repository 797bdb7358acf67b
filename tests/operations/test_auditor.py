import asyncio
import time

import pytest

from keystead.engine import connect
from keystead.keys import Layout
from keystead.operations import audit

from . import shop

FORBIDDEN_COMMANDS = {"keys", "hgetall", "smembers", "get", "mget", "dump", "hvals", "sort"}
WRITES = {"set", "del", "unlink", "expire", "pexpire", "persist", "hset", "zadd", "rename", "eval", "evalsha"}


async def seed_good(valkey) -> int:
    """One good key of every declaration; returns how many keys that are."""
    await shop.VISITS.at(20000).increment(valkey)
    await shop.PRICE.at("tea").set(valkey, shop.Price(250))
    await valkey.set("seen:ann", "1", ex=60)
    await valkey.set("closing:lock", "1", ex=20)
    await valkey.hset("stock:cellar", "tea", 5)
    await shop.CART.at("ann").set(valkey, shop.Order("ann", 1))
    await valkey.rpush("mail:to_send", b'{"customer":"ann","total_cents":1}')
    await valkey.sadd("tags:tea", "hot")
    await valkey.xadd("log", {"name": "opened"})
    await valkey.hset("pending:7", mapping={"customer": "ann", "total_cents": "1"})
    await valkey.zadd("pending", {"7": 100})
    await valkey.set("queue:1", "anything")
    return 12


def findings(report) -> dict[tuple[str, str], list[tuple[str, str]]]:
    return {(group.kind, group.pattern): [(each["key"], each["says"]) for each in group.examples]
            for group in report.findings}


async def test_server_that_holds_what_is_declared_is_clean(valkey):
    keys = await seed_good(valkey)
    report = await audit(valkey, shop.registry())
    assert report.clean
    assert (report.keys, report.undeclared_keys, report.findings, report.undeclared) == (keys, 0, (), ())
    assert {use.pattern: use.keys for use in report.patterns} == {
        each.pattern: 1 for each in shop.registry() if each.kind != "channel"
    }
    assert report.memory_bytes == sum(use.memory_bytes for use in report.patterns) > 500


async def test_empty_server_is_clean(valkey):
    report = await audit(valkey, shop.registry())
    assert (report.clean, report.keys) == (True, 0)


async def test_every_kind_of_drift_is_found_and_nothing_else(valkey):
    good = await seed_good(valkey)
    await valkey.set("tags:salt", "a string")
    await valkey.rpush("visits:20001", "x", "y")
    await valkey.set("price:salt", '{"cents": 30}')
    await valkey.set("price:oil", '{"cents": 30}', ex=86400)
    await valkey.set("price:bad", "{broken", ex=60)
    await valkey.hset("cart:bob", mapping={"customer": "bob", "total_cents": "many"})
    await valkey.expire("cart:bob", 100)
    await valkey.zadd("pending", {"8": 5})
    await valkey.hset("pending:9", mapping={"customer": "eve", "total_cents": "1"})
    for number in range(40):
        await valkey.set(f"session:{number}:token", "x", ex=30)
    for number in range(7):
        await valkey.hset(f"legacy:user:{number * 1000}", "a", "b")
    await valkey.set(b"blob:\xff\xfe", "x")
    report = await audit(valkey, shop.registry())
    assert not report.clean
    found = findings(report)
    assert {group: sorted(key for key, _ in examples) for group, examples in found.items()} == {
        ("wrong type", "tags:{sku}"): ["tags:salt"],
        ("wrong type", "visits:{unix_date}"): ["visits:20001"],
        ("ttl broken", "price:{sku}"): ["price:oil", "price:salt"],
        ("undecodable", "price:{sku}"): ["price:bad"],
        ("undecodable", "cart:{user_sub}"): ["cart:bob"],
        ("broken pair", "pending"): ["pending"],
        ("broken pair", "pending:{order_id}"): ["pending:9"],
    }
    says = {key: why for examples in found.values() for key, why in examples}
    assert says["tags:salt"] == "is a string, declared set"
    assert says["visits:20001"] == "is a list, declared integer"
    assert says["price:salt"] == "never expires, but is declared: at most 10 min"
    assert says["price:oil"].endswith("but at most 10 min is declared")
    assert says["price:bad"].endswith("(byte 1)")
    assert "total_cents" in says["cart:bob"]
    assert says["pending"] == "member '8' has no pending:{order_id}"
    assert says["pending:9"] == "is not a member of pending"
    assert {each.pattern: (each.keys, each.types, each.without_ttl) for each in report.undeclared} == {
        "session:{int}:token": (40, ("string",), 0),
        "legacy:user:{int}": (7, ("hash",), 7),
        r"blob:\xff\xfe": (1, ("string",), 1),
    }
    assert report.undeclared_keys == 48
    assert report.keys == good + 7 + 48


async def test_load_on_the_server_is_bounded(valkey):
    """Large values are sampled: no command touches all of a collection, and nothing is written."""
    await valkey.hset("stock:cellar", mapping={f"sku{n}": n for n in range(50_000)})
    await valkey.rpush("mail:to_send", *[b'{"customer":"ann","total_cents":1}'] * 50_000)
    await valkey.zadd("pending", {"7": 1})
    await valkey.hset("pending:7", mapping={"customer": "ann", "total_cents": "1"})
    await valkey.set("price:big", "x" * 5_000_000, ex=60)
    await valkey.sadd("tags:tea", *[f"tag{n}" for n in range(50_000)])
    await valkey.config_resetstat()
    before = (await valkey.info("stats"))["total_net_output_bytes"]
    report = await audit(valkey, shop.registry())
    stats = await valkey.info("commandstats")
    sent = (await valkey.info("stats"))["total_net_output_bytes"] - before
    assert report.keys == 6
    used = {name.removeprefix("cmdstat_") for name in stats}
    assert not used & FORBIDDEN_COMMANDS
    assert not used & WRITES
    assert sent < 500_000
    slowest = max(stat["usec_per_call"] for name, stat in stats.items() if name != "cmdstat_info")
    assert slowest < 5000, stats


async def test_huge_elements_are_left_alone(valkey):
    await valkey.rpush("mail:to_send", b"x" * 20_000_000)
    await valkey.config_resetstat()
    report = await audit(valkey, shop.registry())
    assert report.clean, "what is too large to be sampled is not judged"
    assert (await valkey.info("stats"))["total_net_output_bytes"] < 100_000


async def test_only_keys_that_fit_are_judged(valkey):
    await seed_good(valkey)
    await valkey.set("stray:1", "x")
    assert (await audit(valkey, shop.registry(), match="price:*")).keys == 1
    assert not (await audit(valkey, shop.registry(), match="stray:*")).clean


async def test_values_are_left_alone_when_asked(valkey):
    await valkey.set("price:bad", "{broken", ex=60)
    await valkey.config_resetstat()
    assert (await audit(valkey, shop.registry(), read_values=False)).clean
    assert "cmdstat_getrange" not in await valkey.info("commandstats")


async def test_progress_ends_at_the_whole(valkey):
    await valkey.mset({f"visits:{number}": number for number in range(3000)})
    steps: list[tuple[int, int]] = []
    await audit(valkey, shop.registry(), on_progress=lambda done, total: steps.append((done, total)))
    assert steps[0] == (0, 3000)
    assert steps[-1] == (3000, 3000)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


async def test_user_without_the_right_to_weigh_still_gets_an_audit(valkey, valkey_server):
    await valkey.set("stray:1", "x")
    await valkey.execute_command("ACL", "SETUSER", "watcher", "on", ">secret", "~*", "+@read", "-memory|usage",
                                 "+scan", "+dbsize", "+ping", "+hello")
    watcher = await connect(f"unix://watcher:secret@{valkey_server.socket_path}")
    try:
        report = await audit(watcher, shop.registry())
    finally:
        await watcher.aclose()
        await valkey.execute_command("ACL", "DELUSER", "watcher")
    assert (report.keys, report.memory_bytes, report.undeclared_keys) == (1, 0, 1)


@pytest.mark.cluster
async def test_every_primary_of_a_cluster_is_walked(cluster):
    registry = shop.registry(Layout.TAGGED)
    for number in range(200):
        await cluster.set(f"stray:{number}", "x")
    for day in range(50):
        await shop.VISITS.at(day).increment(cluster)
    await cluster.zadd("{shop}pending", {"7": 1})
    await cluster.rpush("{shop}visits:99", "wrong")
    report = await audit(cluster, registry)
    assert report.keys == 252
    assert report.undeclared_keys == 200
    assert findings(report) == {
        ("broken pair", "pending"): [("pending", "member '7' has no pending:{order_id}")],
        ("wrong type", "visits:{unix_date}"): [("{shop}visits:99", "is a list, declared integer")],
    }


async def test_a_distant_server_is_not_taken_for_a_slow_one(valkey, fault_proxy):
    await valkey.mset({f"visits:{number}": number for number in range(3000)})
    proxy = await fault_proxy()
    distant = await connect(proxy.url)
    proxy.delay(0.06)
    try:
        began = time.monotonic()
        report = await audit(distant, shop.registry())
        took = time.monotonic() - began
    finally:
        await distant.aclose()
    assert report.keys == 3000
    assert took < 8, "batches stay large, so a few dozen round trips are enough"


async def test_a_slow_server_gets_rest(valkey, fault_proxy):
    await valkey.mset({f"visits:{number}": number for number in range(600)})
    proxy = await fault_proxy()
    slow = await connect(proxy.url)
    proxy.throttle(bytes_per_second=60_000)
    try:
        began = time.monotonic()
        report = await audit(slow, shop.registry(), read_values=False)
        took = time.monotonic() - began
    finally:
        await slow.aclose()
    assert report.keys == 600
    assert took > 1.5


@pytest.mark.slow
async def test_two_hundred_thousand_keys_are_walked_while_others_are_served(valkey, valkey_server):
    """Others are answered quickly all along: no answer of theirs takes long while the audit runs."""
    for start in range(0, 200_000, 10_000):
        await valkey.mset({f"visits:{number}": number for number in range(start, start + 10_000)})
    worst = 0.0
    stop = asyncio.Event()

    def ping() -> float:
        began = time.monotonic()
        valkey_server.call("PING")
        return time.monotonic() - began

    async def others() -> None:
        nonlocal worst
        while not stop.is_set():
            worst = max(worst, await asyncio.to_thread(ping))
            await asyncio.sleep(0.02)

    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(others())
        report = await audit(valkey, shop.registry(), keys_per_second=200_000)
        stop.set()
    took = time.monotonic() - began
    assert report.clean
    assert 200_000 <= report.keys <= 200_500, "a key may be seen twice, none may be missed"
    assert took < 300
    assert worst < 5
