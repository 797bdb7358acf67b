"""Whole values in bounded steps."""

import pytest

from keystead.custody.reading import PAGE_ITEMS, Unreadable, parts
from keystead.engine import Valkey


async def read(valkey: Valkey, key: bytes, type: str, **options: int) -> list[tuple[bytes, ...]]:
    return [part.raw async for part in parts(valkey, key, type, **options)]


async def test_every_type_is_read_whole(valkey: Valkey) -> None:
    many = PAGE_ITEMS * 3 + 7
    await valkey.rpush("list", *range(many))
    await valkey.sadd("set", *range(many))
    await valkey.zadd("zset", {str(number): number for number in range(many)})
    await valkey.hset("hash", mapping={str(number): f"v{number}" for number in range(many)})
    for number in range(many):
        await valkey.xadd("stream", {"n": number})
    numbers = {b"%d" % number for number in range(many)}
    assert [raw[0] for raw in reversed(await read(valkey, b"list", "list"))] == sorted(numbers, key=int)
    for key, type in ((b"set", "set"), (b"zset", "zset"), (b"hash", "hash")):
        assert {raw[0] for raw in await read(valkey, key, type)} == numbers
    assert (b"7", b"v7") in await read(valkey, b"hash", "hash")
    assert await read(valkey, b"stream", "stream") == [(b"n", b"%d" % n) for n in range(many)]


async def test_chunks_of_a_string_overlap(valkey: Valkey) -> None:
    await valkey.set("s", b"0123456789" * 150_000)
    chunks = [part async for part in parts(valkey, b"s", "string", overlap_bytes=100)]
    assert len(chunks) == 3 and chunks[0].raw[0][-100:] == chunks[1].raw[0][:100]
    assert sum(len(chunk.raw[0]) for chunk in chunks) == 1_500_000 + 200


async def test_elements_taken_at_either_end_meanwhile_hide_no_others(valkey: Valkey) -> None:
    await valkey.rpush("list", *range(1000))
    seen: list[bytes] = []
    async for part in parts(valkey, b"list", "list"):
        seen.append(part.handle)
        if len(seen) == 200:
            await valkey.rpop("list", 30)
        if len(seen) == 700:
            await valkey.lpop("list", 10)
            await valkey.lpush("list", "new", "newer")
    assert set(await valkey.lrange("list", 0, -1)) - {b"new", b"newer"} <= set(seen)


async def test_list_that_stays_is_given_once(valkey: Valkey) -> None:
    await valkey.rpush("list", *range(1000))
    assert len([part async for part in parts(valkey, b"list", "list")]) == 1000


async def test_groups_and_consumers_are_parts_of_a_stream(valkey: Valkey) -> None:
    await valkey.xadd("stream", {"n": 1})
    await valkey.xgroup_create("stream", "g", "0")
    await valkey.xreadgroup("g", "ann", {"stream": ">"})
    assert {(b"g",), (b"ann",)} <= set(await read(valkey, b"stream", "stream"))


async def test_types_of_modules_are_told(valkey: Valkey) -> None:
    with pytest.raises(Unreadable, match="MBbloom--"):
        await read(valkey, b"x", "MBbloom--")
    assert await read(valkey, b"x", "none") == []
