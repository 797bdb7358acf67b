"""A key that nobody wrote down is explained by the keys beside it."""

from keystead.engine import Valkey, lookout
from keystead.survey.neighbours import neighbours
from keystead.testing.server import LocalServer


async def test_pattern_is_that_of_the_keys_beside_it(valkey: Valkey, valkey_server: LocalServer) -> None:
    for number in range(30):
        await valkey.hset(f"user:{number}:profile", mapping={"name": "Ann"})
        await valkey.set(f"order:{number}", "x")
    async with lookout(valkey_server.url) as look:
        entry = await neighbours(look, b"user:7:profile")
    assert entry is not None and entry.pattern == "user:{user_id}:profile"
    assert entry.observed is not None and entry.observed.keys == 30
    assert entry.observed.shape == "fields: name text"


async def test_lone_key_and_odd_names_are_answered(valkey: Valkey, valkey_server: LocalServer) -> None:
    odd = [b"alone", b"a*b:[x]", b"\xff\x00:1", b"", b"{tag}:1"]
    for name in odd:
        await valkey.set(name, "x")
    async with lookout(valkey_server.url) as look:
        for name in odd:
            entry = await neighbours(look, name)
            assert entry is None or entry.observed is not None
        assert (await neighbours(look, b"alone")) is not None
