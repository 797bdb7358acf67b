"""The wildcard of a declaration matches its keys."""

import random

import pytest

from keystead.keys import FlagKey, Keyspace, Lane, Layout, NoTtl, OpaqueNamespace, StringKey
from keystead.keys.globs import glob_of

HERE = Keyspace("here", tag="here")
FIXED = StringKey(HERE, "sms:[pending]*:{sid}", str, ttl=NoTtl(), purpose="special characters in the literal part")
LANED = FlagKey(HERE, "seen:{user_sub}:{day:integer}", ttl=NoTtl(), purpose="a tag by lane",
                tag=Lane("seen", "user_sub"))
FOREIGN = OpaqueNamespace(HERE, "other?:*", purpose="another program's")


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED])
@pytest.mark.parametrize("declaration", [FIXED, LANED])
async def test_server_finds_exactly_the_keys_of_the_declaration(valkey, declaration, layout):
    rng = random.Random(5)
    keys = {declaration.reference(declaration.sample(rng)).name(layout) for _ in range(20)}
    for key in keys:
        await valkey.set(key, "1")
    await valkey.set("sms:p*:other", "1")
    await valkey.set("seem:x:1", "1")
    found = {key async for key in valkey.scan_iter(match=glob_of(declaration, layout))}
    assert found == keys


async def test_server_finds_what_lies_in_an_opaque_namespace(valkey):
    await valkey.set("other?:1", "1")
    await valkey.set("otherX:1", "1")
    assert [key async for key in valkey.scan_iter(match=glob_of(FOREIGN, Layout.PLAIN))] == [b"other?:1"]
