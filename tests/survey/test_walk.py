"""Every key is seen, on any server, and nothing that goes wrong on the way loses what was seen before."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keystead.engine import Valkey, lookout
from keystead.errors import Unavailable
from keystead.settings import ValkeySettings
from keystead.survey.stride import Stride
from keystead.survey.walk import UNKNOWN_TTL, Walk
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer
from tests.engine.peers import make_certificates, tls_before

from .old_redis import OldRedis

Row = tuple[str, int, int]
IMPATIENT = ValkeySettings(outage_seconds=0.2, connect_timeout_seconds=2.0, command_timeout_seconds=2.0)


async def rows(walk: Walk) -> dict[bytes, Row]:
    seen: dict[bytes, Row] = {}
    async for page in walk.pages():
        assert len(page.keys) == len(page.types) == len(page.ttls_ms) == len(page.memory_bytes)
        seen |= dict(zip(page.keys, zip(page.types, page.ttls_ms, page.memory_bytes, strict=True), strict=True))
    return seen


async def walked(url: str, **options: object) -> tuple[dict[bytes, Row], Walk]:
    async with lookout(url, settings=IMPATIENT) as look:
        walk = Walk(look, **options)  # type: ignore[arg-type]
        return await rows(walk), walk


def fill(server: LocalServer | OldRedis, keys: int) -> None:
    script = "for n = 1, tonumber(ARGV[1]) do redis.call('SET', 'user:' .. n, n) end"
    server.call("EVAL", script, 0, keys)


async def test_every_key_is_seen_with_type_expiry_and_memory(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 5000)
    await valkey.set("session", "x" * 1000, ex=1000)
    await valkey.rpush("queue", "a", "b")
    await valkey.hset("person", "name", "x")
    await valkey.zadd("board", {"a": 1})
    await valkey.sadd("tags", "a")
    await valkey.xadd("log", {"a": "b"})

    seen, walk = await walked(valkey_server.url)

    assert len(seen) == walk.keys == walk.total == 5006
    assert walk.complete and not walk.partial and not walk.notes
    kind, ttl_ms, memory = seen[b"session"]
    assert kind == "string" and 900_000 < ttl_ms <= 1_000_000 and memory > 1000
    assert seen[b"user:7"][:2] == ("string", -1)
    assert {seen[key][0] for key in (b"queue", b"person", b"board", b"tags", b"log")} == {
        "list", "hash", "zset", "set", "stream"}


async def test_redis_6_is_walked_as_well(old_redis: OldRedis) -> None:
    fill(old_redis, 3000)
    old_redis.call("SET", "short", "1", "PX", 60_000)

    seen, walk = await walked(old_redis.url)

    assert len(seen) == 3001 and walk.complete and not walk.notes
    assert seen[b"short"][0] == "string" and 0 < seen[b"short"][1] <= 60_000
    assert all(memory > 0 for _, _, memory in seen.values())


async def test_names_of_any_bytes_and_size_are_seen(valkey: Valkey, valkey_server: LocalServer) -> None:
    odd = [b"\xff\xfe\x00", b"with space\r\n", b"", "ключ:é".encode(), b"n" * 200_000]
    giant = b"g" * (3 * 1024 * 1024)
    for name in (*odd, giant):
        await valkey.set(name, "1")
    await valkey.set("large value", b"v" * (10 * 1024 * 1024))

    seen, walk = await walked(valkey_server.url)

    assert set(seen) == {*odd, giant, b"large value"}
    assert seen[giant] == ("", UNKNOWN_TTL, 0)
    assert seen[b"large value"][2] > 10 * 1024 * 1024
    assert any("were counted and not asked about" in note for note in walk.notes)


async def test_glob_chooses_keys(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 1000)
    await valkey.mset({"order:1": "a", "order:2": "b"})
    seen, _ = await walked(valkey_server.url, match="order:*")
    assert set(seen) == {b"order:1", b"order:2"}


async def test_sample_ends_early_and_is_not_called_partial(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 5000)
    seen, walk = await walked(valkey_server.url, most_keys=1000)
    assert 1000 <= len(seen) < 2000
    assert walk.total == 5000 and not walk.partial


async def test_empty_server_has_no_pages(valkey: Valkey, valkey_server: LocalServer) -> None:
    seen, walk = await walked(valkey_server.url)
    assert seen == {} and walk.complete


async def test_progress_ends_at_the_total(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 2000)
    told: list[tuple[int, int]] = []
    await walked(valkey_server.url, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 2000) and told[-1] == (2000, 2000)
    assert told == sorted(told)


async def test_walk_keeps_to_its_rate(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 4000)
    began = asyncio.get_running_loop().time()
    seen, _ = await walked(valkey_server.url, stride=Stride(2000))
    assert len(seen) == 4000
    assert asyncio.get_running_loop().time() - began > 1.0, "4,000 keys at 2,000 a second"


# -- permissions ----------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def user(server: LocalServer | OldRedis, *rights: str) -> AsyncIterator[str]:
    server.call("ACL", "SETUSER", "looker", "reset", "on", ">pw", *rights)
    address = server.tcp_url if isinstance(server, LocalServer) else server.url
    try:
        yield address.replace("://", "://looker:pw@")
    finally:
        server.call("ACL", "DELUSER", "looker")


@pytest.mark.parametrize("age", ["valkey", "redis 6"])
@pytest.mark.parametrize(
    ("lacking", "says"),
    [("memory", "memory is unknown"), ("type", "types are unknown"), ("pttl", "expiries are unknown")],
)
async def test_fact_that_may_not_be_asked_is_left_out_and_said(
    valkey: Valkey, valkey_server: LocalServer, old_redis: OldRedis, age: str, lacking: str, says: str
) -> None:
    server = valkey_server if age == "valkey" else old_redis
    fill(server, 1500)
    async with user(server, "~*", "+@all", f"-{lacking}") as url:
        seen, walk = await walked(url)
    assert len(seen) == 1500 and walk.complete
    assert [note for note in walk.notes if says in note], walk.notes
    assert len(walk.notes) == 1
    kind, ttl_ms, memory = seen[b"user:3"]
    assert (kind == "") == (lacking == "type")
    assert (ttl_ms == UNKNOWN_TTL) == (lacking == "pttl")
    assert (memory == 0) == (lacking == "memory")


@pytest.mark.parametrize("age", ["valkey", "redis 6"])
async def test_user_of_some_keys_hears_how_many_others_there_are(
    valkey: Valkey, valkey_server: LocalServer, old_redis: OldRedis, age: str
) -> None:
    server = valkey_server if age == "valkey" else old_redis
    fill(server, 300)
    server.call("SET", "mine:1", "x")
    async with user(server, "~mine:*", "+@all") as url:
        seen, walk = await walked(url)
    assert len(seen) == 301
    assert seen[b"mine:1"][0] == "string" and seen[b"user:1"][0] == ""
    assert walk.hidden_keys == 300 and "300 keys may not be asked about by this user" in walk.notes


async def test_user_with_little_more_than_scan_still_walks(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 100)
    async with user(valkey_server, "~*", "+scan", "+type") as url:
        seen, walk = await walked(url)
    assert len(seen) == 100 and {row[0] for row in seen.values()} == {"string"}
    assert len(walk.notes) == 2


async def test_sample_does_not_need_the_size_of_the_server(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 5000)
    async with user(valkey_server, "~*", "+@all", "-dbsize") as url:
        seen, walk = await walked(url, most_keys=2000)
    assert 2000 <= len(seen) < 3000 and walk.total == 0


async def test_user_who_may_not_scan_is_told(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 10)
    async with user(valkey_server, "~*", "+type") as url:
        with pytest.raises(Unavailable, match=r"does not let us walk its keys: .*scan"):
            await walked(url)


# -- trouble --------------------------------------------------------------------------------------------------------


async def test_what_was_seen_before_the_server_died_is_kept(valkey: Valkey, valkey_server: LocalServer) -> None:
    fill(valkey_server, 20_000)
    async with lookout(valkey_server.url, settings=IMPATIENT) as look:
        walk = Walk(look)
        seen = 0
        async for page in walk.pages():
            seen += len(page.keys)
            if valkey_server.process.running:
                valkey_server.kill()
    valkey_server.restart()
    assert 0 < seen < 20_000 and seen == walk.keys
    assert not walk.complete
    assert "went away" in walk.partial and f"{seen:,} of about 20,000 keys were seen" in walk.partial


async def test_server_that_restarts_meanwhile_makes_the_walk_partial(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    fill(valkey_server, 3000)
    async with lookout(valkey_server.url) as look:
        walk = Walk(look)
        first = True
        async for _ in walk.pages():
            if first:
                valkey_server.restart()
                first = False
    assert "restarted" in walk.partial


async def test_walk_ends_when_the_server_stays_slow(valkey: Valkey, valkey_server: LocalServer, fault_proxy) -> None:  # type: ignore[no-untyped-def]
    fill(valkey_server, 20_000)
    proxy = await fault_proxy()
    async with lookout(proxy.url) as look:
        walk = Walk(look, stride=Stride(late_seconds=0.05, give_up_seconds=0.5))
        async for _ in walk.pages():
            proxy.delay(0.3)
    assert walk.stride.gave_up and 0 < walk.keys < 20_000
    assert "answers slowly" in walk.partial


# -- other places ---------------------------------------------------------------------------------------------------


@pytest.mark.cluster
async def test_cluster_is_walked_on_its_replicas(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(600):
            group.create_task(cluster.set(f"user:{number}", number, ex=5000))
    valkey_cluster.wait_until_well()
    async with lookout(valkey_cluster.url) as look:
        assert look.replicas == len(look.nodes) == 3
        seen = await rows(Walk(look))
    assert set(seen) == {b"user:%d" % number for number in range(600)}
    assert all(kind == "string" and 0 < ttl_ms <= 5_000_000 and memory for kind, ttl_ms, memory in seen.values())
    async with lookout(valkey_cluster.url, primary=True) as look:
        assert look.replicas == 0
        assert len(await rows(Walk(look))) == 600


async def test_tls_carries_a_walk(valkey: Valkey, valkey_server: LocalServer, tmp_path: Path) -> None:
    fill(valkey_server, 1000)
    authority, certificate, key = make_certificates(tmp_path)
    async with tls_before(valkey_server.socket_path, certificate, key) as port:
        seen, _ = await walked(f"valkeys://127.0.0.1:{port}?ca={authority}")
    assert len(seen) == 1000
