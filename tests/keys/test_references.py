"""What every reference is and does, and what becomes of values that do not decode."""

from typing import Any

import msgspec
import pytest

from keystead.errors import Corrupt
from keystead.keys import Keyspace, Layout, ListKey, MapKey, OnCorrupt, RecordKey, StringKey
from keystead.telemetry import counts

from .sample_room import COUNT, NAME, NEWS, QUEUE, RECORD, SEEN, Sms


class TestCorrupt:
    async def test_an_undecodable_value_names_key_declaration_and_byte(self, valkey: Any) -> None:
        await valkey.set("name:user_1", b'{"sid": x')
        before = counts.value("keys_undecodable", declaration="name:{user_sub}")
        with pytest.raises(Corrupt) as caught:
            await NAME.at("user_1").get(valkey)
        error = caught.value
        assert (error.key, error.declaration, error.offset, error.raw) == ("name:user_1", "name:{user_sub}", 8, None)
        assert "name:user_1" in str(error) and "name:{user_sub}" in str(error) and "byte 8" in str(error)
        assert counts.value("keys_undecodable", declaration="name:{user_sub}") == before + 1

    async def test_what_was_taken_off_the_server_is_in_the_error(self, valkey: Any) -> None:
        await valkey.rpush("queue:1", b"broken")
        with pytest.raises(Corrupt) as caught:
            await QUEUE.at("1").pop_left(valkey)
        assert caught.value.raw == b"broken"
        await valkey.set("name:u", b"broken")
        with pytest.raises(Corrupt) as caught:
            await NAME.at("u").get_and_delete(valkey)
        assert caught.value.raw == b"broken"

    async def test_a_cached_value_that_does_not_decode_is_a_miss(self, valkey: Any) -> None:
        here = Keyspace("tests")
        cache = StringKey(here, "cache:{x}", Sms, dead_letter=OnCorrupt.MISS, purpose="t")
        items = ListKey(here, "items:{x}", int, dead_letter=OnCorrupt.MISS, purpose="t")
        record = RecordKey(here, "rec:{x}", Sms, dead_letter=OnCorrupt.MISS, purpose="t")
        numbers = MapKey(here, "nums:{x}", int, dead_letter=OnCorrupt.MISS, purpose="t")
        await valkey.set("cache:1", b"broken")
        await valkey.rpush("items:1", "1", "x", "2")
        await valkey.hset("rec:1", "attempts", "1")
        await valkey.hset("nums:1", mapping={"a": "1", "b": "x"})
        before = counts.value("keys_undecodable", declaration="cache:{x}")
        assert await cache.at("1").get(valkey) is None
        assert counts.value("keys_undecodable", declaration="cache:{x}") == before + 1
        assert await items.at("1").range(valkey) == [1, 2]
        assert await record.at("1").get(valkey) is None
        assert await numbers.at("1").all(valkey) == {"a": 1}
        assert await numbers.at("1").get(valkey, "b") is None

    async def test_an_element_is_named_by_its_place(self, valkey: Any) -> None:
        await valkey.rpush("queue:1", msgspec.json.encode(Sms("a")), b"x")
        with pytest.raises(Corrupt, match="element 1 of those read"):
            await QUEUE.at("1").range(valkey)


@pytest.mark.cluster
async def test_every_type_works_on_a_cluster(cluster: Any) -> None:
    assert cluster.layout is Layout.TAGGED
    await NAME.at("user_1").set(cluster, Sms("a"))
    assert await NAME.at("user_1").get(cluster) == Sms("a")
    assert await cluster.exists("{tests}name:user_1") == 1
    await RECORD.at("1").set(cluster, Sms("a"))
    assert await RECORD.at("1").get(cluster) == Sms("a")
    assert await NEWS.at("1").publish(cluster, Sms("a")) == 0


def test_references_are_values() -> None:
    assert NAME.at("a") == NAME.at(user_sub="a") != NAME.at("b")
    assert len({NAME.at("a"), NAME.at("a"), NAME.at("b")}) == 2
    assert COUNT.at("a") != SEEN.at("a")
    assert (NAME.at("a").logical, repr(NAME.at("a"))) == ("name:a", "<string name:a>")
    assert NAME.key(Layout.TAGGED, "a") == b"{tests}name:a"
