"""Requests that may be sent again."""

import asyncio
import random
from collections import Counter

import pytest

from keystead.clock import SystemClock
from keystead.edge import Begun, Caller, CallerKind, KeptAnswer, KeyInUse, KeyReused, Repeats, Tickets
from keystead.edge.idempotency import MOST_ANSWER_BYTES
from keystead.edge.keys import CLAIM_SECONDS, REPEAT, REPEAT_SECONDS
from keystead.engine import Valkey
from keystead.errors import Invalid, Unavailable

ADA, BEN = Caller(CallerKind.PROGRAM, "ada"), Caller(CallerKind.PROGRAM, "ben")
DONE = KeptAnswer(201, ((b"content-type", b"application/json"),), b'{"name": "Ada Lovelace"}')


def repeats(server: Valkey, secret: bytes = bytes(32)) -> Repeats:
    return Repeats(server, Tickets(secret, SystemClock()))


async def test_the_first_runs_and_repeats_get_its_answer(server: Valkey) -> None:
    found = repeats(server)
    begun = await found.begin(ADA, "k", b"request")
    assert isinstance(begun, Begun)
    with pytest.raises(KeyInUse) as running:
        await found.begin(ADA, "k", b"request")
    assert running.value.retry_after_seconds == 1
    assert await found.keep(begun, DONE)
    assert await found.begin(ADA, "k", b"request") == DONE == await repeats(server).begin(ADA, "k", b"request")
    with pytest.raises(KeyReused):
        await found.begin(ADA, "k", b"another")
    assert isinstance(await found.begin(BEN, "k", b"another"), Begun), "keys belong to their callers"
    assert isinstance(await found.begin(Caller(CallerKind.USER, "ada"), "k", b"another"), Begun)


async def test_a_key_is_free_again_after_a_refusal_and_when_its_holder_died(valkey: Valkey, moving_clock) -> None:
    found = repeats(valkey)
    begun = await found.begin(ADA, "k", b"request")
    assert isinstance(begun, Begun) and await found.let_go(begun)
    dead = await found.begin(ADA, "k", b"other body")
    assert isinstance(dead, Begun)
    moving_clock.advance(CLAIM_SECONDS - 1)
    with pytest.raises(KeyInUse):
        await found.begin(ADA, "k", b"other body")
    assert await found.prolong(dead)
    moving_clock.advance(CLAIM_SECONDS - 1)
    with pytest.raises(KeyInUse):
        await found.begin(ADA, "k", b"other body")
    moving_clock.advance(2)
    begun = await found.begin(ADA, "k", b"other body")
    assert isinstance(begun, Begun)
    assert not await found.keep(dead, DONE) and not await found.let_go(dead), "it was given up"
    assert await found.keep(begun, DONE)
    moving_clock.advance(REPEAT_SECONDS - 5)
    assert await found.begin(ADA, "k", b"other body") == DONE
    moving_clock.advance(10)
    assert isinstance(await found.begin(ADA, "k", b"other body"), Begun)


async def test_nothing_that_was_answered_can_be_read_on_the_server(server: Valkey) -> None:
    found = repeats(server)
    begun = await found.begin(ADA, "a very secret key", b"request of Ada Lovelace")
    assert isinstance(begun, Begun)
    await found.keep(begun, DONE)
    held = await server.hgetall(REPEAT.at(begun.entry).name(server.layout))
    assert set(held) == {b"request", b"answer"}
    raw = b"".join((*held, *held.values(), REPEAT.at(begun.entry).name(server.layout)))
    assert b"Lovelace" not in raw and b"secret key" not in raw and b"ada" not in raw
    with pytest.raises(KeyInUse, match="was done"):
        await repeats(server, bytes(31) + b"x").begin(ADA, "a very secret key", b"request of Ada Lovelace")


async def test_an_answer_that_is_too_long_is_not_kept_and_the_request_is_not_run_again(server: Valkey) -> None:
    found = repeats(server)
    begun = await found.begin(ADA, "k", b"r")
    assert isinstance(begun, Begun)
    assert await found.keep(begun, KeptAnswer(200, (), b"x" * (MOST_ANSWER_BYTES + 1)))
    with pytest.raises(KeyInUse, match="too long") as refused:
        await found.begin(ADA, "k", b"r")
    assert refused.value.retry_after_seconds is None
    assert await server.hstrlen(REPEAT.at(begun.entry).name(server.layout), "answer") < 200


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "é", "a\x7fb"])
async def test_a_key_that_is_none_is_refused(valkey: Valkey, key: str) -> None:
    with pytest.raises(Invalid):
        await repeats(valkey).begin(ADA, key, b"r")
    assert await valkey.dbsize() == 0


@pytest.mark.parametrize("seed", range(5))
async def test_of_any_number_at_once_one_runs(server: Valkey, seed: int) -> None:
    """Random duplicates over a few keys and two processes: each key's effect happens exactly once."""
    draw, ran = random.Random(seed), Counter[str]()
    both = repeats(server), repeats(server)

    async def client(key: str) -> KeptAnswer:
        while True:
            try:
                begun = await draw.choice(both).begin(ADA, key, key.encode())
            except KeyInUse:
                await asyncio.sleep(0.001)
                continue
            if isinstance(begun, KeptAnswer):
                return begun
            ran[key] += 1
            await asyncio.sleep(draw.random() / 100)
            answer = KeptAnswer(200, (), f"{key} {ran[key]}".encode())
            await both[0].keep(begun, answer)
            return answer

    keys = [f"key-{number}" for number in range(8)]
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(client(key) for key in keys * 12))
    assert ran == Counter(keys)
    assert Counter(answer.body.decode() for answer in answers) == Counter({f"{key} 1": 12 for key in keys})


async def test_an_answer_is_not_for_a_token_of_the_same_name_that_is_for_less(server: Valkey) -> None:
    found = repeats(server)
    begun = await found.begin(Caller(CallerKind.PROGRAM, "shop", frozenset({"users"})), "k", b"request")
    assert isinstance(begun, Begun) and await found.keep(begun, DONE)
    for scopes in ((), ("metrics",), ("metrics", "users")):
        assert isinstance(await found.begin(Caller(CallerKind.PROGRAM, "shop", frozenset(scopes)), "k", b"request"),
                          Begun), scopes


async def test_a_full_server_remembers_nothing_and_spoils_nothing(valkey: Valkey) -> None:
    found = repeats(valkey)
    begun = await found.begin(ADA, "k", b"request")
    assert isinstance(begun, Begun)
    await valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable, match="memory full"):
            await found.begin(BEN, "k", b"request")
        assert not await found.prolong(begun)
        assert not await found.keep(begun, DONE), "the request was done; it is only not remembered"
    finally:
        await valkey.config_set("maxmemory", 0)
