import pytest

from keystead.clock import Clock
from keystead.engine import Valkey, connect
from keystead.testing.clock import MovableClock
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer


async def test_clock_stands_still_until_moved(moving_clock: MovableClock) -> None:
    clock: Clock = moving_clock
    before = clock.now()
    assert clock.now() == before
    moving_clock.advance(90.5)
    assert clock.now() == before + 90.5


async def test_remaining_ttls_shrink_and_those_that_are_over_end(valkey: Valkey, moving_clock: MovableClock) -> None:
    await valkey.set("short", 1, px=60_000)
    await valkey.set("long", 1, px=3600_000)
    await valkey.set("forever", 1)
    await valkey.hset("hash", "f", 1)
    await valkey.expire("hash", 90)
    moving_clock.advance(60)
    assert sorted(await valkey.keys()) == [b"forever", b"hash", b"long"]
    assert 3510_000 < await valkey.pttl("long") <= 3540_000
    assert 0 < await valkey.pttl("hash") <= 30_000
    assert await valkey.ttl("forever") == -1


async def test_small_steps_add_up(valkey: Valkey, moving_clock: MovableClock) -> None:
    await valkey.set("k", 1, ex=100)
    for _ in range(9):
        moving_clock.advance(10)
    assert 0 < await valkey.ttl("k") <= 10
    moving_clock.advance(10)
    assert await valkey.exists("k") == 0


async def test_many_keys_move_exactly_once(valkey: Valkey, moving_clock: MovableClock) -> None:
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(5000):
            pipeline.set(f"k{number}", 1, ex=10 if number % 2 else 1000)
        await pipeline.execute()
    moving_clock.advance(100)
    assert await valkey.dbsize() == 2500
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(0, 5000, 2):
            pipeline.ttl(f"k{number}")
        assert all(850 < left <= 900 for left in await pipeline.execute())


async def test_other_databases_move_too(valkey: Valkey, moving_clock: MovableClock, valkey_server: LocalServer) -> None:
    other = await connect(f"{valkey_server.url}?db=3")
    await other.set("k", 1, ex=30)
    moving_clock.advance(31)
    assert await other.exists("k") == 0
    await other.aclose()


async def test_fields_of_a_hash_move_too(valkey: Valkey, moving_clock: MovableClock) -> None:
    await valkey.hset("h", mapping={"short": 1, "long": 1, "forever": 1})
    await valkey.execute_command("HEXPIRE", "h", 10, "FIELDS", 1, "short")
    await valkey.execute_command("HEXPIRE", "h", 100, "FIELDS", 1, "long")
    moving_clock.advance(20)
    assert sorted(await valkey.hkeys("h")) == [b"forever", b"long"]
    [left] = await valkey.execute_command("HTTL", "h", "FIELDS", 1, "long")
    assert 50 <= left <= 80


def test_clock_is_not_put_back(moving_clock: MovableClock) -> None:
    with pytest.raises(ValueError, match="not put back"):
        moving_clock.advance(-1)


@pytest.mark.cluster
async def test_cluster_moves_when_told(
    cluster: Valkey, valkey_cluster: LocalCluster, moving_clock: MovableClock
) -> None:
    moving_clock.add(*valkey_cluster.primaries())
    for number in range(30):
        await cluster.set(f"k{number}", 1, ex=100 + 100 * number)
    moving_clock.advance(1650)
    assert sum([await cluster.exists(f"k{number}") for number in range(30)]) == 14
