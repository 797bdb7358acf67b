import asyncio
import time

import pytest

from keystead.engine import connect
from keystead.inventory import from_registry
from keystead.keys import Layout
from keystead.survey import compare, look_at_declared
from keystead.survey.values import Values

from ..operations import shop

FORBIDDEN_COMMANDS = {"keys", "hgetall", "smembers", "get", "mget", "dump", "hvals", "sort"}
WRITES = {"set", "del", "unlink", "expire", "pexpire", "persist", "hset", "zadd", "rename", "eval", "evalsha"}


class Report:
    """All that one audit found."""

    def __init__(self, inventory, live, reasons, deeper):
        self.live, self.tally, self.reasons = live, live.tally, reasons
        self.findings = [each for each in (*compare(inventory, live, None), *deeper)
                         if each.kind.label not in ("unused", "not-in-code", "personal-data", "ambiguous", "large")]
        self.clean = not self.findings


async def audit(valkey, registry, **options) -> Report:
    inventory = from_registry(registry)
    return Report(inventory, *await look_at_declared(valkey, registry, inventory, **options))


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


def findings(report) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(each.kind.label, each.pattern): tuple(sorted(each.examples)) for each in report.findings}


async def test_server_that_holds_what_is_declared_is_clean(valkey):
    keys = await seed_good(valkey)
    report = await audit(valkey, shop.registry())
    assert report.clean, report.findings
    assert report.live.whole and not report.live.unfinished and report.reasons == ()
    assert (report.tally.keys, report.tally.strays.keys) == (keys, 0)
    assert {pattern: tally.keys for pattern, tally in report.tally.entries.items()} == {
        each.pattern: 1 for each in shop.registry() if each.kind != "channel"
    }
    assert report.tally.memory_bytes > 500


async def test_empty_server_is_clean(valkey):
    report = await audit(valkey, shop.registry())
    assert (report.clean, report.tally.keys) == (True, 0)


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
    found = findings(report)
    strays = {pattern for kind, pattern in found if kind == "undocumented"}
    assert strays == {"session:{session_id}:token", "legacy:user:{user_id}", "blob:{blob_id}"}
    assert {place: keys for place, keys in found.items() if place[0] != "undocumented"} == {
        ("wrong-type", "tags:{sku}"): ("tags:salt",),
        ("wrong-type", "visits:{unix_date}"): ("visits:20001",),
        ("never-expires", "price:{sku}"): ("price:salt",),
        ("expires-late", "price:{sku}"): ("price:oil",),
        ("unreadable", "price:{sku}"): ("price:bad",),
        ("unreadable", "cart:{user_sub}"): ("cart:bob",),
        ("broken-pair", "pending"): ("pending",),
        ("broken-pair", "pending:{order_id}"): ("pending:9",),
    }
    says = {(each.kind.label, each.pattern): each.says for each in report.findings}
    assert says["unreadable", "price:{sku}"].endswith("(byte 1)")
    assert "total_cents" in says["unreadable", "cart:{user_sub}"]
    assert says["broken-pair", "pending"] == "1 key: member '8' has no pending:{order_id}"
    assert says["broken-pair", "pending:{order_id}"] == "1 key: is not a member of pending"
    assert report.tally.strays.keys == 48
    assert report.tally.keys == good + 7 + 48


async def test_load_on_the_server_is_bounded(valkey):
    """Large values are sampled: no command touches all of a collection, and nothing is written."""
    await valkey.hset("stock:cellar", mapping={f"sku{n}": n for n in range(50_000)})
    await valkey.rpush("mail:to_send", *[b'{"customer":"ann","total_cents":1}'] * 50_000)
    await valkey.zadd("pending", {"7": 1})
    await valkey.hset("pending:7", mapping={"customer": "ann", "total_cents": "1"})
    await valkey.set("price:big", "x" * 5_000_000, ex=60)
    await valkey.sadd("tags:tea", *[f"tag{n}" for n in range(50_000)])
    slowest = []
    for _ in range(5):
        await valkey.config_resetstat()
        before = (await valkey.info("stats"))["total_net_output_bytes"]
        report = await audit(valkey, shop.registry())
        stats = await valkey.info("commandstats")
        sent = (await valkey.info("stats"))["total_net_output_bytes"] - before
        assert report.tally.keys == 6
        used = {name.removeprefix("cmdstat_") for name in stats}
        assert not used & FORBIDDEN_COMMANDS
        assert not used & WRITES
        assert sent < 500_000
        slowest.append(max(stat["usec_per_call"] for name, stat in stats.items() if name != "cmdstat_info"))
    # A command that touches all is slow each time; one that had to wait for the machine is not.
    assert min(slowest) < 5000, stats


async def test_huge_elements_are_left_alone(valkey):
    await valkey.rpush("mail:to_send", b"x" * 20_000_000)
    await valkey.config_resetstat()
    report = await audit(valkey, shop.registry())
    assert report.clean, "what is too large to be sampled is not judged"
    assert (await valkey.info("stats"))["total_net_output_bytes"] < 100_000


async def test_only_keys_that_fit_are_judged(valkey):
    await seed_good(valkey)
    await valkey.set("stray:1", "x")
    assert (await audit(valkey, shop.registry(), match="price:*")).tally.keys == 1
    assert not (await audit(valkey, shop.registry(), match="stray:*")).clean


async def test_values_are_left_alone_when_asked(valkey):
    await valkey.set("price:bad", "{broken", ex=60)
    await valkey.config_resetstat()
    assert (await audit(valkey, shop.registry(), read_values=False)).clean
    assert "cmdstat_getrange" not in await valkey.info("commandstats")


async def test_progress_ends_at_the_whole(valkey):
    await valkey.mset({f"visits:{number}": number for number in range(3000)})
    steps: list[tuple[int, int]] = []
    await audit(valkey, shop.registry(), progress=lambda done, total: steps.append((done, total)))
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
    assert (report.tally.keys, report.tally.memory_bytes, report.tally.strays.keys) == (1, 0, 1)


async def test_keys_that_may_not_be_judged_do_not_pass_for_clean(valkey, valkey_server):
    await valkey.set("visits:20000", "1")
    await valkey.execute_command("ACL", "SETUSER", "watcher", "on", ">secret", "~*", "+@read", "-type",
                                 "+scan", "+dbsize", "+ping", "+hello")
    watcher = await connect(f"unix://watcher:secret@{valkey_server.socket_path}")
    try:
        report = await audit(watcher, shop.registry())
    finally:
        await watcher.aclose()
        await valkey.execute_command("ACL", "DELUSER", "watcher")
    assert report.live.unfinished and not report.live.whole
    assert "types of some keys" in report.reasons[0]


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
    assert report.tally.keys == 252
    assert report.tally.strays.keys == 200
    assert {place: keys for place, keys in findings(report).items() if place[0] != "undocumented"} == {
        ("broken-pair", "pending"): ("pending",), ("wrong-type", "visits:{unix_date}"): ("{shop}visits:99",),
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
    assert report.tally.keys == 3000
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
    assert report.tally.keys == 600
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
    assert 200_000 <= report.tally.keys <= 200_500, "a key may be seen twice, none may be missed"
    assert took < 300
    assert worst < 5


async def test_a_server_that_goes_away_leaves_what_was_seen(valkey, fault_proxy, monkeypatch):
    await valkey.mset({f"visits:{number}": number for number in range(3000)})
    proxy = await fault_proxy()
    away, checks = await connect(proxy.url), []
    check = Values.check

    async def cut_off(self, seen):
        checks.append(seen)
        if len(checks) == 3:
            await proxy.refuse()
            proxy.cut()
        await check(self, seen)

    monkeypatch.setattr(Values, "check", cut_off)
    try:
        report = await audit(away, shop.registry())
    finally:
        await away.aclose()
    assert report.live.unfinished and not report.live.whole
    assert 0 < report.tally.keys < 3000 and "went away" in report.reasons[0]
