"""A write that carries an older number is refused by the server."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.patterns.lock import LockLost
from keystead.patterns.lock_fence import MOST_WORDS, Fenced

from .lock_room import CONTENT, ENTRIES, LEASED, NUMBERED, TOTAL

CLOCK = SystemClock()
NOW = 1_700_000_000.0


async def test_typed_writes_of_the_latest_holder_run_and_answer_as_usual(server: Valkey) -> None:
    async with NUMBERED.at("x").hold(server, CLOCK) as held:
        fenced = held.fenced(server)
        await CONTENT.at("x").set(fenced, "new")
        assert await CONTENT.at("x").get(fenced) == "new"
        assert await CONTENT.at("x").set_if_absent(fenced, "newer") is False
        assert await CONTENT.at("y").get(fenced) is None
        assert await TOTAL.at("x").increment(fenced, 3) == 3
        assert await fenced.run_block(
            [("RPUSH", ENTRIES.at("x").name(server.layout), "a"), ("GET", CONTENT.at("y").name(server.layout)),
             ("LRANGE", ENTRIES.at("x").name(server.layout), 0, -1)], list,
        ) == [1, None, [b"a"]]


async def test_late_write_of_an_earlier_holder_changes_nothing(server: Valkey) -> None:
    lock = NUMBERED.at("x")
    first = await lock.try_acquire(server, now=NOW)
    await CONTENT.at("x").set(lock.fenced(server, first), "of the first")
    await server.delete(lock.reference.name(server.layout))
    await CONTENT.at("x").set(lock.fenced(server, first), "still the first, since nobody took over")
    second = await lock.try_acquire(server, now=NOW)

    with pytest.raises(LockLost, match="number 1 is past, 2 is the latest"):
        await CONTENT.at("x").set(lock.fenced(server, first), "too late")
    with pytest.raises(LockLost):
        await lock.fenced(server, first).run_block([("DEL", CONTENT.at("x").name(server.layout))], list)

    assert await CONTENT.at("x").get(server) == "still the first, since nobody took over"
    await CONTENT.at("x").set(lock.fenced(server, second), "of the second")
    assert await CONTENT.at("x").get(server) == "of the second"


async def test_fenced_writes_travel_in_a_pipeline(server: Valkey) -> None:
    lease = await NUMBERED.at("x").try_acquire(server, now=NOW)
    async with server.pipeline(transaction=False) as pipe:
        adding = TOTAL.at("x").increment(NUMBERED.at("x").fenced(pipe, lease))
        late = TOTAL.at("x").increment(Fenced(pipe, NUMBERED.at("x").fence, 0))
        with pytest.raises(LockLost):
            await pipe.execute()
    assert await adding == 1
    with pytest.raises(LockLost):
        await late


async def test_lost_counter_refuses_every_holder(server: Valkey) -> None:
    lease = await NUMBERED.at("x").try_acquire(server, now=NOW)
    await NUMBERED.at("x").fence.delete(server)
    with pytest.raises(LockLost):
        await CONTENT.at("x").set(NUMBERED.at("x").fenced(server, lease), "?")
    assert await CONTENT.at("x").get(server) is None


async def test_entries_of_competing_holders_never_mix(server: Valkey) -> None:
    """Holders lose their lock at random moments and go on writing; the entries stay sorted by holder."""
    lock, refused = NUMBERED.at("x"), 0

    async def writer() -> None:
        nonlocal refused
        for _ in range(5):
            while (lease := await lock.try_acquire(server, now=NOW)) is None:
                await asyncio.sleep(0.001)
            for _ in range(10):
                await asyncio.sleep(0.002)  # time enough to lose the lock
                try:
                    await ENTRIES.at("x").push_right(lock.fenced(server, lease), f"{lease.fence:03}")
                except LockLost:
                    refused += 1

    async def thief() -> None:
        while True:
            await asyncio.sleep(0.001)
            await server.delete(lock.reference.name(server.layout))

    stealing = asyncio.create_task(thief())
    await asyncio.gather(*(writer() for _ in range(4)))
    stealing.cancel()
    entries = await server.lrange(ENTRIES.at("x").name(server.layout), 0, -1)
    assert entries == sorted(entries)
    assert len(entries) + refused == 4 * 5 * 10
    assert refused > 0


def test_lock_without_a_counter_cannot_fence() -> None:
    from keystead.patterns.lock_lease import LockLease

    with pytest.raises(DeclarationError, match="declare fence="):
        LEASED.at("x").fenced(None, LockLease(b"", None, 0, 0.0))


async def test_command_without_a_key_is_refused(server: Valkey) -> None:
    lease = await NUMBERED.at("x").try_acquire(server, now=NOW)
    with pytest.raises(DeclarationError, match="names no key"):
        await NUMBERED.at("x").fenced(server, lease).run(("PING",), bool)


async def test_command_of_too_many_words_is_refused_before_anything_is_written(server: Valkey) -> None:
    lease = await NUMBERED.at("x").try_acquire(server, now=NOW)
    fenced, key = NUMBERED.at("x").fenced(server, lease), ENTRIES.at("x").name(server.layout)
    await fenced.run(("RPUSH", key, *["e"] * (MOST_WORDS - 2)), int)
    with pytest.raises(DeclarationError, match="only 7000 can be fenced"):
        await fenced.run_block([("DEL", key), ("RPUSH", key, *["e"] * (MOST_WORDS - 1))], len)
    assert await server.llen(key) == MOST_WORDS - 2
