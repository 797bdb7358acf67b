import json
from dataclasses import replace

import pytest

from keystead.keys import Keyspace, Layout, Registry, StringKey, key_slot
from keystead.operations import explain, explain_without_server, looks_like_pattern

from . import shop


async def test_declared_key_is_told_whole(valkey):
    await shop.CART.at("ann").set(valkey, shop.Order("ann", 990))
    told = await explain(valkey, shop.registry(), b"cart:ann")
    assert told.exists
    assert (told.pattern, told.room, told.kind, told.type) == ("cart:{user_sub}", "shop", "key", "hash")
    assert told.arguments == {"user_sub": "ann"}
    assert told.value == {"customer": "ann", "total_cents": 990}
    assert 3590 < told.ttl_seconds <= 3600
    assert told.ttl_verdict == "as declared"
    assert told.personal
    assert told.writers == ("shop.desk",)
    assert told.scripts == ("shop/check_out.lua",)
    assert told.memory_bytes > 50
    assert told.slot == key_slot(b"cart:ann")
    assert told.findings == ()
    assert told.declaration["purpose"] == "what someone is about to buy"
    assert json.loads(json.dumps(told.as_dict()))["value"] == told.value


async def test_key_that_is_not_there_is_told_from_its_declaration(valkey):
    told = await explain(valkey, shop.registry(), b"cart:bob")
    assert not told.exists
    assert told.pattern == "cart:{user_sub}"
    assert told.arguments == {"user_sub": "bob"}
    assert (told.type, told.value, told.ttl_seconds, told.findings) == (None, None, None, ())


async def test_what_disagrees_is_found(valkey):
    await valkey.rpush("cart:ann", "x")
    told = await explain(valkey, shop.registry(), b"cart:ann")
    assert told.type == "list"
    assert told.value == ["x"]
    assert told.findings == (
        "is a list, but declared as hash", "never expires, but is declared: 1 h after the last use",
    )
    assert told.problem is None, "a value of another type is not judged by the codec"


async def test_value_that_does_not_decode_has_a_problem(valkey):
    await valkey.set("price:tea", "cheap", ex=60)
    told = await explain(valkey, shop.registry(), b"price:tea")
    assert told.problem
    assert told.findings == (f"does not decode: {told.problem}",)
    assert told.value == "cheap"


async def test_what_an_audit_would_find_in_a_value_is_found_here_too(valkey):
    await valkey.hset("stock:cellar", mapping={"tea": 5, "not:declared": 7})
    told = await explain(valkey, shop.registry(), b"stock:cellar")
    assert told.value == {"tea": 5, "not:declared": 7}
    assert told.problem == "field 'not:declared' is not declared"


async def test_undeclared_key_is_shown_as_stored(valkey):
    await valkey.set(b"odd:\xff", b"\x00\x01")
    told = await explain(valkey, shop.registry(), b"odd:\xff")
    assert told.key == r"odd:\xff"
    assert told.pattern is None
    assert told.declaration is None
    assert told.value == r"\x00\x01"
    assert told.findings == ("nothing declares this key",)


async def test_channel_is_told_as_a_channel(valkey):
    told = await explain(valkey, shop.registry(), b"news:sport")
    assert (told.kind, told.pattern, told.arguments) == ("channel", "news:{topic}", {"topic": "sport"})
    assert not told.exists


async def test_opaque_key_is_shown_and_not_judged(valkey):
    await valkey.set("queue:1", "x", ex=5)
    told = await explain(valkey, shop.registry(), b"queue:1")
    assert (told.kind, told.exists, told.value, told.findings) == ("opaque", True, "x", ())


@pytest.mark.cluster
async def test_documented_name_is_understood_on_a_tagged_layout(cluster):
    await shop.CART.at("ann").set(cluster, shop.Order("ann", 990))
    registry = shop.registry(Layout.TAGGED)
    by_name = await explain(cluster, registry, b"cart:ann")
    by_raw_key = await explain(cluster, registry, b"{shop}cart:ann")
    assert replace(by_name, ttl_seconds=None) == replace(by_raw_key, ttl_seconds=None)
    assert by_name.key == "{shop}cart:ann"
    assert by_name.value == {"customer": "ann", "total_cents": 990}


@pytest.mark.cluster
async def test_a_documented_name_is_found_in_whichever_lane_it_is(two_lanes):
    room = Keyspace("room", tag="room", laned=True)
    word = StringKey(room, "word:{name}", str, purpose="a test")
    await word.at("a").set(two_lanes.lane(1), "hello")
    told = await explain(two_lanes, Registry([room], two_lanes.layout), b"word:a")
    assert (told.key, told.exists, told.value) == ("{room:1}word:a", True, "hello")
    assert (await explain(two_lanes, Registry([room], two_lanes.layout), b"word:b")).key == "{room:0}word:b"


async def test_explaining_writes_nothing_and_does_not_renew(valkey):
    await shop.CART.at("ann").set(valkey, shop.Order("ann", 990))
    await valkey.pexpire("cart:ann", 100_000)
    before = await valkey.dump("cart:ann")
    await explain(valkey, shop.registry(), b"cart:ann")
    assert await valkey.dump("cart:ann") == before
    assert await valkey.pttl("cart:ann") <= 100_000


def test_registry_alone_can_explain():
    told = explain_without_server(shop.registry(), b"visits:20000")
    assert (told.pattern, told.arguments, told.exists) == ("visits:{unix_date}", {"unix_date": "20000"}, False)


@pytest.mark.parametrize(
    ("name", "is_pattern"),
    [("user:{id}", True), ("user:7", False), ("{msg}sms:pending", False), ("{msg}sms:{sid}", True), ("{id}", False),
     ("a:{word:integer}:b", True), ("a{}b", False), ("json:{\"a\":1}", False)],
)
def test_placeholders_are_told_from_hash_tags(name, is_pattern):
    assert looks_like_pattern(name) == is_pattern
