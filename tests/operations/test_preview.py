import pytest

from keystead.engine import connect
from keystead.operations.preview import PREVIEW_BYTES, PREVIEW_ELEMENTS, read_preview

from . import shop


async def preview(valkey, key, server_type, declaration=None, memory_bytes=None):
    return await read_preview(valkey, key.encode(), server_type, declaration, memory_bytes)


async def test_struct_is_shown_field_by_field(valkey):
    await shop.PRICE.at("tea").set(valkey, shop.Price(250))
    shown = await preview(valkey, "price:tea", "string", shop.PRICE)
    assert shown.value == {"cents": 250, "currency": "EUR"}
    assert (shown.problem, shown.truncated, shown.length) == (None, False, 30)


async def test_value_that_does_not_decode_is_shown_as_stored_with_the_reason(valkey):
    await valkey.set("price:tea", b'{"cents": \xff}')
    shown = await preview(valkey, "price:tea", "string", shop.PRICE)
    assert shown.value == r'{"cents": \xff}'
    assert shown.problem
    assert "byte" in shown.problem


async def test_long_string_is_cut_and_not_judged(valkey):
    await valkey.set("price:tea", b"x" * (PREVIEW_BYTES * 3))
    shown = await preview(valkey, "price:tea", "string", shop.PRICE)
    assert shown.truncated
    assert shown.length == PREVIEW_BYTES * 3
    assert shown.problem is None
    assert shown.value.startswith("xxx") and len(shown.value) < 3000


async def test_record_is_shown_whole_and_its_unknown_fields_too(valkey):
    await valkey.hset("cart:ann", mapping={"customer": "ann", "total_cents": "5", "colour": b"\xfe"})
    shown = await preview(valkey, "cart:ann", "hash", shop.CART)
    assert shown.value == {"customer": "ann", "total_cents": 5, "colour": r"\xfe"}
    assert shown.problem is None


async def test_record_with_a_broken_field_names_the_field(valkey):
    await valkey.hset("cart:ann", mapping={"customer": "ann", "total_cents": "many"})
    shown = await preview(valkey, "cart:ann", "hash", shop.CART)
    assert "total_cents" in shown.problem
    assert shown.value["total_cents"] == "many"


async def test_only_the_first_elements_of_a_long_list_are_read(valkey):
    await valkey.rpush("mail:to_send", *[b'{"customer":"c%d","total_cents":1}' % n for n in range(5000)])
    await valkey.config_resetstat()
    shown = await preview(valkey, "mail:to_send", "list", shop.MAIL)
    assert len(shown.value) == PREVIEW_ELEMENTS
    assert shown.value[0] == {"customer": "c0", "total_cents": 1}
    assert (shown.length, shown.truncated, shown.problem) == (5000, True, None)


async def test_broken_element_is_named_by_its_place(valkey):
    await valkey.rpush("mail:to_send", b'{"customer":"a","total_cents":1}', b"not json")
    shown = await preview(valkey, "mail:to_send", "list", shop.MAIL)
    assert shown.problem.startswith("element 2: ")
    assert shown.value[1] == "not json"


@pytest.mark.parametrize(("fields", "whole"), [(50, True), (5000, False)])
async def test_map_is_shown_as_far_as_it_is_small(valkey, fields, whole):
    await valkey.hset("stock:cellar", mapping={f"sku{n}": n for n in range(fields)})
    shown = await preview(valkey, "stock:cellar", "hash", shop.STOCK)
    assert shown.truncated != whole
    assert shown.length == fields
    assert (len(shown.value) == fields) == whole
    assert all(value == int(name.removeprefix("sku")) for name, value in shown.value.items())


async def test_members_scores_and_entries_are_shown(valkey):
    await valkey.sadd("tags:tea", "hot")
    assert (await preview(valkey, "tags:tea", "set", shop.TAGS)).value == ["hot"]
    await valkey.zadd("pending", {"7": 1.5})
    assert (await preview(valkey, "pending", "zset", shop.PENDING)).value == [{"member": "7", "score": 1.5}]
    await valkey.xadd("log", {"name": "opened"}, id="5-1")
    assert (await preview(valkey, "log", "stream", shop.LOG)).value == [{"id": "5-1", "fields": {"name": "opened"}}]


async def test_undeclared_value_is_shown_as_stored(valkey):
    await valkey.hset("x", mapping={b"\xff": b"1", b"b": b"two"})
    assert (await preview(valkey, "x", "hash")).value == {r"\xff": "1", "b": "two"}


async def test_elements_that_are_huge_are_not_fetched(valkey):
    await valkey.rpush("mail:to_send", b"x" * 8_000_000)
    memory_bytes = await valkey.memory_usage("mail:to_send")
    shown = await preview(valkey, "mail:to_send", "list", shop.MAIL, memory_bytes)
    assert shown.value is None
    assert shown.note
    assert shown.length == 1


async def test_value_that_may_not_be_read_is_said_so(valkey, valkey_server):
    await valkey.set("price:tea", "x")
    await valkey.execute_command("ACL", "SETUSER", "porter", "on", ">word", "~*", "+ping", "+hello", "+strlen")
    porter = await connect(f"unix://porter:word@{valkey_server.socket_path}")
    try:
        shown = await preview(porter, "price:tea", "string", shop.PRICE)
    finally:
        await porter.aclose()
        await valkey.execute_command("ACL", "DELUSER", "porter")
    assert shown.value is None
    assert shown.problem is None
    assert "does not show it" in shown.note


async def test_key_that_became_something_else_is_no_failure(valkey):
    await valkey.set("cart:ann", "x")
    assert "WRONGTYPE" in (await preview(valkey, "cart:ann", "hash", shop.CART)).note
