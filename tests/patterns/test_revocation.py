"""Revocation: one first use among all, marks that live as long as their token."""

import asyncio
import math
import time

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from keystead.engine import Valkey
from keystead.errors import Corrupt, DeclarationError, Invalid
from keystead.keys import Keyspace, Layout, RecordKey, Registry, Until
from keystead.patterns.revocation import Revocation, TokenTaken, TokenUse

from .crash import Died, Mortal
from .machines import ServerMachine, on_both, play

ROOM = Keyspace("tests.tokens", tag="tokens")
FACTS = {"writers": ("tests",), "readers": ("tests",)}


class Hidden(msgspec.Struct, frozen=True):
    reason: str
    tries: int = 0


REVOKED = Revocation(ROOM, "login:revoked:{jti}", most_seconds=7200, purpose="used or revoked log-in tokens", **FACTS)
SPREAD = Revocation(ROOM, "seen_jits:{jti}", tag="jit:{jti}", grace_seconds=60, purpose="tokens seen", **FACTS)
PAIRED = Revocation(ROOM, "session:{user}:revoked:{jti}", purpose="ended sessions of a person", **FACTS)
HIDDEN = RecordKey(ROOM, "login:hidden:{jti}", Hidden, ttl=Until(), purpose="why a log-in looked strange", **FACTS)
REGISTRY = Registry([ROOM])


def soon() -> float:
    return math.floor(time.time()) + 1800.0


async def test_first_use_is_allowed_and_the_second_is_not(server: Valkey, no_undeclared_keys) -> None:
    if server.layout is Layout.PLAIN:
        no_undeclared_keys(REGISTRY)
    until = soon()
    assert await REVOKED.use_once(server, "a", until=until) is True
    assert await REVOKED.use_once(server, "a", until=until) is False
    assert await REVOKED.use(server, "a", until=until) is TokenUse.USED
    assert await REVOKED.use(server, "b", until=until) is TokenUse.FIRST


async def test_mark_is_one_and_ends_a_grace_after_the_token(server: Valkey) -> None:
    until = soon()
    await REVOKED.use_once(server, "a", until=until)
    await REVOKED.revoke(server, "b", until=until)
    for jti in "ab":
        key = REVOKED.mark.at(jti).name(server.layout)
        assert await server.get(key) == b"1"
        assert await server.pexpiretime(key) == (until + 61) * 1000


async def test_exactly_one_of_many_callers_is_first(server: Valkey) -> None:
    uses = await asyncio.gather(*(REVOKED.use_once(server, "a", until=soon()) for _ in range(200)))
    assert sum(uses) == 1


async def test_token_that_expired_beyond_the_grace_is_never_first(server: Valkey) -> None:
    for _ in range(2):
        assert await REVOKED.use(server, "a", until=time.time() - 62) is TokenUse.TOO_LATE
        assert await REVOKED.use_once(server, "a", until=time.time() - 62) is False
    assert await server.dbsize() == 0
    assert await REVOKED.use_once(server, "a", until=time.time() - 30) is True, "within the grace"


async def test_revoked_token_cannot_be_used_and_is_told_apart_from_others(server: Valkey) -> None:
    assert await REVOKED.revoke(server, "a", "c", until=soon()) == 2
    assert await REVOKED.revoke(server, "a", "d", until=soon()) == 1
    assert await REVOKED.use_once(server, "a", until=soon()) is False
    assert await REVOKED.is_revoked(server, "a") is True
    assert await REVOKED.is_revoked(server, "b") is False
    assert await REVOKED.revoked_among(server, ["a", "b", "c", "d", "e"]) == [True, False, True, True, False]
    assert await REVOKED.revoked_among(server, []) == []


async def test_revoking_again_lengthens_and_never_shortens(server: Valkey) -> None:
    until, key = soon(), REVOKED.mark.at("a").name(server.layout)
    await REVOKED.revoke(server, "a", until=until)
    await REVOKED.revoke(server, "a", until=until - 600)
    assert await server.pexpiretime(key) == (until + 61) * 1000
    await REVOKED.revoke(server, "a", until=until + 600)
    assert await server.pexpiretime(key) == (until + 661) * 1000
    assert await REVOKED.revoke(server, "past", until=time.time() - 3600) == 0


async def test_marks_of_many_slots_are_written_and_read_at_once(server: Valkey) -> None:
    ids = [f"jti{number}" for number in range(1200)]
    assert await SPREAD.revoke(server, *ids[:600], until=soon()) == 600
    assert await SPREAD.revoked_among(server, ids) == [True] * 600 + [False] * 600
    assert await REVOKED.revoke(server, *ids, until=soon()) == 1200


async def test_id_of_several_parts(server: Valkey) -> None:
    assert await PAIRED.use_once(server, ("u1", "a"), until=soon()) is True
    assert await PAIRED.is_revoked(server, ("u1", "a")) is True
    assert await PAIRED.is_revoked(server, ("u2", "a")) is False


async def test_first_user_takes_what_was_kept(server: Valkey) -> None:
    until = soon()
    await HIDDEN.at("a").until(until).set(server, Hidden("email", 3))
    taken = await REVOKED.use_and_take(server, "a", HIDDEN.at("a"), until=until)
    assert taken == TokenTaken(TokenUse.FIRST, Hidden("email", 3))
    assert await REVOKED.use_and_take(server, "a", HIDDEN.at("a"), until=until) == TokenTaken(TokenUse.USED, None)
    lost = await REVOKED.use_and_take(server, "b", HIDDEN.at("b"), until=until)
    assert lost == TokenTaken(TokenUse.FIRST, None)
    assert await HIDDEN.at("a").exists(server) is False
    late = await REVOKED.use_and_take(server, "c", HIDDEN.at("c"), until=time.time() - 3600)
    assert late == TokenTaken(TokenUse.TOO_LATE, None)


async def test_record_that_does_not_decode_is_handed_out_with_the_error(server: Valkey) -> None:
    await server.hset(HIDDEN.at("a").name(server.layout), mapping={"reason": "x", "tries": "many"})
    with pytest.raises(Corrupt, match="login:hidden:a") as found:
        await REVOKED.use_and_take(server, "a", HIDDEN.at("a"), until=soon())
    assert found.value.raw == b'{"reason":"x","tries":"many"}'


async def test_operations_share_a_round_trip_in_a_pipeline(server: Valkey) -> None:
    async with server.pipeline(transaction=False) as pipe:
        used = REVOKED.use_once(pipe, "a", until=soon())
        revoked = REVOKED.revoke(pipe, "b", "c", until=soon())
        among = REVOKED.revoked_among(pipe, ["a", "b", "x"])
        await pipe.execute()
    assert (await used, await revoked, await among) == (True, 2, [True, True, False])


@pytest.mark.parametrize("jti", ["", "a:b", "a\nb", "x" * 65])
async def test_id_that_cannot_be_a_key_is_invalid_and_not_a_mistake_of_ours(valkey: Valkey, jti: str) -> None:
    for ask in (lambda: REVOKED.use_once(valkey, jti, until=soon()), lambda: REVOKED.is_revoked(valkey, jti)):
        with pytest.raises(Invalid, match="token's id"):
            await ask()


async def test_expiry_in_milliseconds_is_noticed(valkey: Valkey) -> None:
    with pytest.raises(Invalid, match="unix time in seconds"):
        await REVOKED.use_once(valkey, "a", until=soon() * 1000)


def test_mark_needs_a_variable() -> None:
    with pytest.raises(DeclarationError, match="needs a variable"):
        Revocation(Keyspace("t", tag="t"), "revoked", purpose="x")


async def test_crash_around_the_use_never_allows_two(server: Valkey) -> None:
    for after in (False, True):
        await server.flushall()
        with pytest.raises(Died):
            await REVOKED.use_once(Mortal(server, 1, after=after), "a", until=soon())
        assert await REVOKED.use_once(server, "a", until=soon()) is not after
        assert await REVOKED.use_once(server, "a", until=soon()) is False


@on_both
def test_marks_behave_as_a_set_with_ends(request: pytest.FixtureRequest, place: str) -> None:
    jtis = st.sampled_from("abcd")

    class Machine(ServerMachine):
        # The marks end at instants of the server's clock, so the model lives by it and "time passes" is the test's own:
        # what lies in the past of the moved clock is taken away. Ends lie five seconds off its steps.
        starts_at = None

        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.ends: dict[str, float] = {}

        @rule(jti=jtis, ahead=st.sampled_from([-3600, 34, 604, 3004]), times=st.integers(1, 2))
        def use(self, jti: str, ahead: int, times: int) -> None:
            for _ in range(times):
                first = jti not in self.ends and ahead > 0
                used = self.run(lambda: REVOKED.use_once(self.client, jti, until=time.time() + ahead))
                assert used is first
                if first:
                    self.ends[jti] = self.clock.now() + ahead + 61

        @rule(jti=jtis, ahead=st.sampled_from([34, 604, 3004]))
        def revoke(self, jti: str, ahead: int) -> None:
            fresh = self.run(lambda: REVOKED.revoke(self.client, jti, until=time.time() + ahead))
            assert fresh == (jti not in self.ends)
            self.ends[jti] = max(self.ends.get(jti, 0), self.clock.now() + ahead + 61)

        @rule()
        def look(self) -> None:
            found = self.run(lambda: REVOKED.revoked_among(self.client, list("abcd")))
            assert found == [jti in self.ends for jti in "abcd"]

        @rule(seconds=st.sampled_from([10, 100, 700]))
        def time_passes(self, seconds: int) -> None:
            self.clock.advance(seconds)
            for jti, end in list(self.ends.items()):
                if end <= self.clock.now():
                    del self.ends[jti]

    play(request, place, Machine)
