"""Couriers that die: at every exchange with the server, with a message that kills, and while others work on."""

import asyncio
from itertools import product

import pytest

from keystead.clock import SystemClock
from keystead.messaging.sending import Verdict
from keystead.messaging.sending.courier_given_up import settle_given_up

from .mortal import Died, ForgetfulClient, MortalClient, has_died, lives
from .post import DELIVERED, LETTERS, Letter, Postman, courier, delivered, fill

CLOCK = SystemClock()
LETTERS_SENT = [Letter("a"), Letter("b", lane="high"), Letter("c", lane="low"), Letter("d")]


async def forget_everything(server) -> None:
    for node in await server.nodes():
        for key in await node.call(("KEYS", "*")):
            await node.call(("DEL", key))


async def expire(server, *parts: str) -> None:
    """As if the time of these keys were over."""
    for node in await server.nodes():
        for key in await node.call(("KEYS", "*")):
            if key.decode().endswith(parts):
                await node.call(("DEL", key))


async def left(server) -> list[bytes]:
    """Every message that still is anywhere."""
    found: list[bytes] = []
    for node in await server.nodes():
        for key in await node.call(("KEYS", "*")):
            is_place = "post:to_send" in key.decode() or "post:purgatory" in key.decode()
            if is_place and await node.call(("TYPE", key)) in (b"list", "list"):
                found += await node.call(("LRANGE", key, 0, -1))
    return found


async def die_or_end(work) -> None:
    try:
        await work
    except BaseException as error:
        if not has_died(error):
            raise


@pytest.mark.parametrize("batch_items", [1, 3])
@pytest.mark.parametrize("on_ambiguous", ["verify", "resend"])
async def test_a_run_that_dies_at_any_exchange_loses_nothing_and_settles_once(valkey, batch_items, on_ambiguous):
    async for mortal in lives(valkey):
        await forget_everything(valkey)
        await fill(valkey, *LETTERS_SENT)
        calls: list[str] = []
        dying = Postman(mortal, batch_items=batch_items)
        healthy = Postman(valkey, batch_items=batch_items)
        for postman in (dying, healthy):
            postman.remember(calls)
        await die_or_end(courier(mortal, CLOCK, dying, on_ambiguous=on_ambiguous).run())
        survived = not mortal.dead
        await expire(valkey, "post:lock")
        await courier(valkey, CLOCK, healthy, on_ambiguous=on_ambiguous).run()
        assert sorted(word.split()[0] for word in await delivered(valkey)) == ["a", "b", "c", "d"]
        assert set(calls) == {"a", "b", "c", "d"}
        if on_ambiguous == "verify":
            assert len(calls) == 4
        assert await left(valkey) == []
        if survived:
            break


async def test_what_a_dead_courier_held_is_carried_by_another(server):
    for at, after in product(range(1, 12), (False, True)):
        mortal = MortalClient(server, at, after=after)
        await forget_everything(server)
        await fill(server, *LETTERS_SENT)
        stop = asyncio.Event()
        calls: list[str] = []
        postmen = [Postman(mortal), Postman(server)]
        for postman in postmen:
            postman.remember(calls)
        dying = asyncio.create_task(die_or_end(courier(mortal, CLOCK, postmen[0]).work(stop)))
        async with asyncio.timeout(30):
            while not mortal.dead and await DELIVERED.at().length(server) < 4:
                await asyncio.sleep(0.01)
            stop.set()
            await dying
        await expire(server, ":alive")
        await courier(server, CLOCK, postmen[1]).run()
        assert sorted(word.split()[0] for word in await delivered(server)) == ["a", "b", "c", "d"]
        assert sorted(calls) == ["a", "b", "c", "d"]
        assert await left(server) == []


async def test_a_message_that_kills_three_couriers_is_given_up_and_the_others_are_carried(server):
    await fill(server, Letter("good1"), Letter("killer"), Letter("good2"), Letter("good3"))
    calls: list[str] = []

    def kill(letter: Letter) -> None:
        if letter.uid == "killer":
            raise Died

    for _ in range(6):
        postman = Postman(server)
        postman.calls, postman.before = calls, kill
        postman.says = lambda letter: Verdict.NOT_SENT
        stop = asyncio.Event()
        working = asyncio.create_task(die_or_end(courier(server, CLOCK, postman, concurrent_requests=2).work(stop)))
        async with asyncio.timeout(30):
            while not working.done():
                if await LETTERS.work.dead.length(server) and await DELIVERED.at().length(server) == 4:
                    stop.set()
                await asyncio.sleep(0.02)
        await expire(server, ":alive")
        if await LETTERS.work.dead.length(server) and await DELIVERED.at().length(server) == 4:
            break
    (letter,) = await LETTERS.work.dead_letters(server)
    assert b'"killer"' in letter.raw and letter.attempts == 3
    # Its end was told too, once.
    assert sorted(await delivered(server)) == ["good1", "good2", "good3", "killer dropped"]


async def test_a_courier_that_was_taken_for_dead_writes_nothing_of_what_it_carried(server):
    await fill(server, Letter("a"))
    slow, quick = Postman(server, seconds=2.0), Postman(server)
    stop = asyncio.Event()
    # With room for one request it takes nothing more meanwhile, not even its own message.
    working = asyncio.create_task(courier(server, CLOCK, slow, concurrent_requests=1).work(stop))
    async with asyncio.timeout(30):
        while not slow.calls:
            await asyncio.sleep(0.01)
    await expire(server, ":alive")
    await courier(server, CLOCK, quick).run()  # adopts it, and finds out
    stop.set()
    await working
    assert await delivered(server) == ["a found"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_courier_that_loses_any_one_exchange_goes_on_and_carries_everything_once(valkey, monkeypatch, after):
    monkeypatch.setattr("keystead.messaging.sending.courier_hands.PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("keystead.messaging.sending.courier_hands.LATE_SECONDS", 0.05)
    monkeypatch.setattr("keystead.messaging.sending.courier_shift.PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("keystead.messaging.sending.courier_settling.PAUSE_SECONDS", 0.01)
    # The first exchange is the sign of life with which work begins; whoever started it begins again.
    for at in range(2, 12):
        await forget_everything(valkey)
        await fill(valkey, *LETTERS_SENT)
        forgetful = ForgetfulClient(valkey, at, after=after)
        postman = Postman(forgetful, batch_items=3)
        stop = asyncio.Event()
        working = asyncio.create_task(courier(forgetful, CLOCK, postman).work(stop))
        async with asyncio.timeout(30):
            while await DELIVERED.at().length(valkey) < 4:
                assert not working.done() or working.result() is None
                await asyncio.sleep(0.01)
            stop.set()
            await working
        assert sorted(await delivered(valkey)) == ["a", "b", "c", "d"], at
        assert sorted(postman.calls) == ["a", "b", "c", "d"], at
        assert await left(valkey) == []


async def test_a_mortal_client_dies_where_it_should(valkey):
    mortal = MortalClient(valkey, 2, after=True)
    await mortal.run(("SET", "x", "1"), bool)
    async with mortal.pipeline(transaction=False) as pipeline:
        pipeline.run(("SET", "x", "2"), bool)
        with pytest.raises(Died):
            await pipeline.execute()
    assert await valkey.get("x") == b"2"


async def test_whoever_dies_while_a_message_is_given_up_its_end_is_told_once(valkey):
    async for mortal in lives(valkey):
        await forget_everything(valkey)
        await fill(valkey, Letter("killer"))
        for _ in range(3):
            await LETTERS.work.worker("w").take(valkey, 1, now=CLOCK.now())
            await expire(valkey, ":alive")
            await LETTERS.work.adopt(valkey, now=CLOCK.now(), given_up=LETTERS.given_up)
        assert await LETTERS.given_up.length(valkey) == 1
        await die_or_end(settle_given_up(mortal, CLOCK, LETTERS, Postman(mortal), trace_seconds=60))
        await settle_given_up(valkey, CLOCK, LETTERS, Postman(valkey), trace_seconds=60)
        assert await delivered(valkey) == ["killer dropped"]
        assert await LETTERS.work.dead.length(valkey) == 1 and await LETTERS.given_up.length(valkey) == 0
        if not mortal.dead:
            break
