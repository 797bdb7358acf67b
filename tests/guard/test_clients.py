"""Guarded clients against real servers: one node and a cluster, waiting and asynchronous, redis-py and valkey-py."""

import gc
import logging
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from keystead.errors import Invalid
from keystead.guard import Guard, Kind, NotInInventory, guard_of, guarded
from keystead.inventory.files import write_inventory
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from .shop import SHOP


@pytest.fixture
def port(valkey_server: LocalServer) -> int:
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    return valkey_server.port


@pytest.fixture(params=["redis-py", "valkey-py"])
def client(request: pytest.FixtureRequest, port: int) -> Iterator[Any]:
    if request.param == "redis-py":
        made: Any = redis.Redis(port=port)
    else:
        made = pytest.importorskip("valkey").Valkey(port=port)
    yield made
    made.close()


def found(client: object) -> dict[Kind, int]:
    return {finding.kind: finding.count for finding in guard_of(client).report().findings}


def test_observing_counts_and_never_disturbs(client: Any) -> None:
    same = guarded(client, SHOP)
    assert same is client and isinstance(client, type(client).__mro__[1])
    client.set("basket:1", "x")
    client.hset("cart:1", "a", "b")
    client.set("session:1", "x")
    assert client.get("basket:1") == b"x" and client.hget("cart:1", "a") == b"b"
    assert found(client) == {Kind.UNDOCUMENTED: 2, Kind.MISSING_TTL: 1}
    report = client.guard.report()
    assert report.patterns == {"cart:{id}": 2, "session:{token}": 1} and not report.clean
    assert "ranking" in report.unused and report.commands == 5
    assert Path(report.findings[0].where.rpartition(":")[0]).name == "test_clients.py"
    assert "nothing in keystead.toml fits it" in str(report)


def test_strict_sends_nothing_that_is_wrong(client: Any, port: int) -> None:
    guarded(client, SHOP, strict=True)
    with pytest.raises(NotInInventory):
        client.set("basket:1", "x")
    with client.pipeline() as pipe:
        pipe.hset("cart:1", "a", "b")
        with pytest.raises(NotInInventory):
            pipe.lpush("cart:1", "x")
    with redis.Redis(port=port) as plain:
        assert plain.dbsize() == 0


def test_pipelines_transactions_scripts_and_locks_are_guarded(client: Any) -> None:
    guarded(client, SHOP)
    with client.pipeline(transaction=False) as pipe:
        pipe.get("p:1").get("session:1").execute()
    client.transaction(lambda pipe: (pipe.multi(), pipe.set("t:1", 1)), "t:1")
    client.register_script("return 1")(keys=["s:1"])
    with client.lock("l:1", timeout=5):
        pass
    with client.pipeline() as pipe:
        client.register_script("return 1")(keys=["u:1"], client=pipe)
        pipe.execute()
    patterns = {finding.pattern for finding in client.guard.report().findings}
    assert patterns >= {"p:*", "t:*", "s:*", "l:*", "u:*"}


def test_who_instruments_the_library_later_is_still_called(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, called = type(client), []
    original = kind.execute_command

    def instrumented(self: Any, *words: Any, **options: Any) -> Any:
        called.append(words)
        return original(self, *words, **options)

    guarded(client, SHOP)
    monkeypatch.setattr(kind, "execute_command", instrumented)
    client.hset("cart:1", "a", "b")
    assert [words[0] for words in called] == ["HSET"]


def test_pipelines_of_modules_are_guarded(client: Any) -> None:
    guarded(client, SHOP, strict=True)
    with pytest.raises(NotInInventory):
        client.json().pipeline().execute_command("SET", "basket:1", "x")
    with pytest.raises(NotInInventory):
        client.ts().pipeline().execute_command("SET", "basket:1", "x")


def test_channels_are_guarded(client: Any) -> None:
    guarded(client, SHOP)
    client.publish("news:sport", "x")
    client.publish("gossip", "x")
    with client.pubsub() as listener:
        listener.subscribe("news:sport", "rumour")
        listener.psubscribe("news:*")
    findings = client.guard.report().findings
    assert {(each.kind, each.pattern) for each in findings} == {
        (Kind.UNDOCUMENTED_CHANNEL, "gossip"), (Kind.UNDOCUMENTED_CHANNEL, "rumour")}


def test_suspected_expiry_is_confirmed_by_the_server(client: Any) -> None:
    guarded(client, SHOP, grace_seconds=0.0)
    for day in (1, 2):
        client.incr(f"visits:{day}")
    with type(client).__mro__[1](connection_pool=client.connection_pool) as other:
        other.expire("visits:2", 60)
    assert found(client) == {Kind.SUSPECTED_TTL: 2}
    assert client.guard.report().clean, "it is only suspected"
    report = client.guard.confirm(client)
    assert [(each.kind, each.count, each.examples) for each in report.findings] == [(Kind.MISSING_TTL, 1, ["visits:1"])]


def test_suspected_key_of_any_bytes_is_confirmed(client: Any) -> None:
    guarded(client, SHOP, grace_seconds=0.0)
    client.incr(b"visits:\xff")
    report = client.guard.confirm(client)
    assert {finding.kind: finding.count for finding in report.findings} == {Kind.MISSING_TTL: 1}


def test_expiry_in_the_same_pipeline_is_enough(client: Any) -> None:
    guarded(client, SHOP, grace_seconds=1000)
    with client.pipeline() as pipe:
        pipe.incr("visits:1").expire("visits:1", 60).execute()
    client.incr("visits:1")
    assert client.guard.report().waiting == 0
    client.incr("visits:2")
    assert client.guard.report().waiting == 1


def test_pipeline_is_not_kept_alive(client: Any) -> None:
    guarded(client, SHOP)
    gc.disable()
    try:
        pipe = client.pipeline()
        pipe.get("cart:1")
        seen = weakref.ref(pipe)
        del pipe
        assert seen() is None, "its connection would be held until the next collection"
    finally:
        gc.enable()


def test_callback_and_log_tell_the_first_of_each_kind(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []
    guarded(client, SHOP, on_finding=told.append)
    with caplog.at_level(logging.WARNING, "keystead.guard"):
        for number in range(5):
            client.get(f"basket:{number}")
    assert [finding.pattern for finding in told] == ["basket:*"]
    assert sum("undocumented: GET names basket:0" in record.getMessage() for record in caplog.records) == 1


def test_inventory_may_be_a_file(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "keystead.toml"
    path.write_text(write_inventory(SHOP))
    guarded(client, str(path), strict=True)
    client.hset("cart:1", "a", "b")
    with pytest.raises(NotInInventory):
        client.get("basket:1")


def test_one_guard_serves_several_clients(port: int) -> None:
    guard = Guard(SHOP)
    with guard.watch(redis.Redis(port=port)) as first, guard.watch(redis.Redis(port=port)) as second:
        first.get("basket:1")
        second.get("basket:2")
        guard.watch(first)
    assert [finding.count for finding in guard.report().findings] == [2]
    guard.clear()
    assert guard.report().clean and guard.report().commands == 0


def test_other_things_are_refused() -> None:
    with pytest.raises(Invalid, match="takes a redis-py or valkey-py client, not a dict"):
        guarded({}, SHOP)
    with pytest.raises(Invalid, match="not guarded"):
        guard_of(redis.Redis())


@pytest.mark.parametrize("library", ["redis", "valkey"])
async def test_asynchronous_clients_are_guarded(library: str, port: int) -> None:
    module = pytest.importorskip(f"{library}.asyncio")
    client = guarded((module.Redis if library == "redis" else module.Valkey)(port=port), SHOP, grace_seconds=0.0)
    await client.set("basket:1", "x")
    await client.incr("visits:1")
    async with client.pipeline(transaction=True) as pipe:
        await pipe.watch("cart:1")
        assert await pipe.hget("cart:1", "a") is None
        pipe.multi()
        assert await pipe.hset("cart:1", "a", "b").get("bin:1").execute() == [1, None]
    listener = client.pubsub()
    await listener.subscribe("rumour")
    await listener.aclose()
    report = await client.guard.aconfirm(client)
    assert {(each.kind, each.pattern) for each in report.findings} == {
        (Kind.UNDOCUMENTED, "basket:*"), (Kind.UNDOCUMENTED, "bin:*"), (Kind.MISSING_TTL, "visits:{day}"),
        (Kind.UNDOCUMENTED_CHANNEL, "rumour")}
    client.guard._judge.strict = True
    with pytest.raises(NotInInventory):
        await client.get("basket:1")
    await client.aclose()


def port_of(cluster: LocalCluster) -> int:
    return int(str(cluster.primaries()[0].options["port"]))


@pytest.mark.cluster
def test_cluster_client_is_guarded(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    valkey_cluster.flush()
    client = guarded(redis.RedisCluster("127.0.0.1", port_of(valkey_cluster)), SHOP)
    client.set("basket:1", "x")
    pipe = client.pipeline()
    pipe.get("bin:1")
    pipe.hset("cart:1", "a", "b")
    pipe.hset("cart:2", "a", "b")
    assert pipe.execute() == [None, 1, 1]
    assert {each.pattern for each in client.guard.report().findings} == {"basket:*", "bin:*"}
    client.guard._judge.strict = True
    with pytest.raises(NotInInventory):
        client.get("bin:1")
    client.close()


@pytest.mark.cluster
async def test_asynchronous_cluster_client_is_guarded(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    valkey_cluster.flush()
    client = guarded(redis.asyncio.RedisCluster("127.0.0.1", port_of(valkey_cluster)), SHOP)
    await client.set("basket:1", "x")
    async with client.pipeline() as pipe:
        assert await pipe.get("bin:1").hset("cart:1", "a", "b").execute() == [None, 1]
    assert {each.pattern for each in client.guard.report().findings} == {"basket:*", "bin:*"}
    client.guard._judge.strict = True
    with pytest.raises(NotInInventory):
        await client.get("bin:1")
    await client.aclose()
