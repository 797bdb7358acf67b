import time

import pytest

from keystead.engine import Valkey, connect
from keystead.engine.scan import scan
from keystead.errors import Invalid, Unavailable
from keystead.testing.server import LocalServer


async def fill(valkey: Valkey, count: int, prefix: str = "k") -> set[bytes]:
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(count):
            pipeline.set(f"{prefix}:{number}", 1)
        await pipeline.execute()
    return {f"{prefix}:{number}".encode() for number in range(count)}


async def test_every_key_comes_in_batches_of_the_asked_size(valkey: Valkey) -> None:
    keys = await fill(valkey, 2500)
    batches = [batch async for batch in scan(valkey, batch_keys=200)]
    assert {key for batch in batches for key in batch} == keys
    assert {len(batch) for batch in batches[:-1]} == {200}
    assert 0 < len(batches[-1]) <= 200


async def test_large_batches_are_put_together_from_small_steps(valkey: Valkey, valkey_server: LocalServer) -> None:
    await fill(valkey, 12_000)
    await valkey.config_resetstat()
    assert len([batch async for batch in scan(valkey, batch_keys=100_000)]) == 1
    assert (await valkey.info("commandstats"))["cmdstat_scan"]["calls"] >= 12


async def test_empty_server_gives_no_batch(valkey: Valkey) -> None:
    assert [batch async for batch in scan(valkey)] == []


async def test_glob_and_type_select(valkey: Valkey) -> None:
    await fill(valkey, 50)
    wanted = await fill(valkey, 50, "w")
    await valkey.sadd("w:set", "x")
    await valkey.set(b"w:\xff\xfe", 1)
    found = [key async for batch in scan(valkey, match="w:*", type="string") for key in batch]
    assert set(found) == wanted | {b"w:\xff\xfe"}
    assert [batch async for batch in scan(valkey, match=b"w:\xff*")] == [[b"w:\xff\xfe"]]


async def test_rate_cap_counts_keys_that_do_not_match(valkey: Valkey) -> None:
    await fill(valkey, 3000)
    started = time.monotonic()
    async for _ in scan(valkey, match="nothing", batch_keys=100, keys_per_second=10_000):
        pass
    assert time.monotonic() - started > 0.25


async def test_progress_starts_at_nothing_and_ends_at_all(valkey: Valkey) -> None:
    await fill(valkey, 1000)
    seen: list[tuple[int, int]] = []
    async for _ in scan(valkey, match="k:1*", batch_keys=100, progress=lambda *now: seen.append(now)):
        pass
    assert seen[0] == (0, 1000)
    assert seen[-1] == (1000, 1000)
    assert seen == sorted(seen)
    assert len(seen) > 5


async def test_restart_in_the_middle_is_told_not_hidden() -> None:
    server = LocalServer()
    server.start()
    valkey = await connect(server.url)
    try:
        await fill(valkey, 2000)
        with pytest.raises(Unavailable, match="walk again"):
            batches = 0
            async for _ in scan(valkey, batch_keys=100):
                batches += 1
                if batches == 3:
                    server.restart()
    finally:
        await valkey.aclose()
        server.stop()


async def test_user_who_may_not_ask_for_facts_can_scan(valkey: Valkey, valkey_server: LocalServer) -> None:
    keys = await fill(valkey, 300)
    valkey_server.call("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+scan", "+dbsize", "+ping", "+hello")
    try:
        reader = await connect(f"unix://reader:pw@{valkey_server.socket_path}")
        assert {key async for batch in scan(reader) for key in batch} == keys
        await reader.aclose()
    finally:
        valkey_server.call("ACL", "DELUSER", "reader")


async def test_senseless_sizes_are_refused(valkey: Valkey) -> None:
    for wrong in ({"batch_keys": 0}, {"keys_per_second": 0.0}):
        with pytest.raises(Invalid, match="above zero"):
            await anext(scan(valkey, **wrong))  # type: ignore[arg-type]


@pytest.mark.cluster
async def test_every_primary_of_a_cluster_is_walked(cluster: Valkey) -> None:
    keys = await fill(cluster, 1000)
    seen: list[tuple[int, int]] = []
    batches = [batch async for batch in scan(cluster, batch_keys=100, progress=lambda *now: seen.append(now))]
    assert {key for batch in batches for key in batch} == keys
    assert seen[0] == (0, 1000)
    assert seen[-1] == (1000, 1000)
