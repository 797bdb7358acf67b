"""Operations of each type on a real server: what they change and answer, and what becomes of undecodable values."""

from enum import Enum
from typing import Any

import msgspec
import pytest

from keystead.errors import Corrupt, DeclarationError
from keystead.keys import (
    Channel,
    FlagKey,
    GeoKey,
    IntegerKey,
    Keyspace,
    Layout,
    ListKey,
    LockKey,
    LockKind,
    MapKey,
    OnCorrupt,
    RecordKey,
    SetKey,
    SortedSetKey,
    StreamKey,
    StringKey,
)
from keystead.telemetry import counts


class State(Enum):
    SENT = "sent"
    FAILED = "failed"


class Sms(msgspec.Struct, frozen=True):
    sid: str
    attempts: int = 0
    due_at: float = 0.0
    urgent: bool = False
    state: State = State.SENT
    note: str | None = None
    tries: list[int] = []
    raw: bytes = b""


HERE = Keyspace("tests")
NAME = StringKey(HERE, "name:{user_sub}", Sms, purpose="t")
COUNT = IntegerKey(HERE, "count:{x}", purpose="t")
SEEN = FlagKey(HERE, "seen:{x}", purpose="t")
LOCK = LockKey(HERE, "lock:{x}", LockKind.SMART, purpose="t")
RECORD = RecordKey(HERE, "record:{x}", Sms, purpose="t")
COUNTS = MapKey(HERE, "counts:{x}", int, fields=("attempted", "failed:{reason}"), purpose="t")
RATES = MapKey(HERE, "rates:{x}", float, purpose="t")
QUEUE = ListKey(HERE, "queue:{x}", Sms, purpose="t")
NAMES = SetKey(HERE, "names:{x}", str, purpose="t")
DUE = SortedSetKey(HERE, "due:{x}", str, member="sid", score="when due", purpose="t")
LOG = StreamKey(HERE, "log:{x}", Sms, most_items=2, purpose="t")
PLACES = GeoKey(HERE, "places:{x}", str, member="event", purpose="t")
NEWS = Channel(HERE, "news:{x}", Sms, purpose="t")


async def test_a_value(valkey: Any) -> None:
    ref = NAME.at("user_1")
    assert await ref.get(valkey) is None
    await ref.set(valkey, Sms("SM1"))
    assert await valkey.get("name:user_1") == msgspec.json.encode(Sms("SM1"))
    assert await ref.get(valkey) == Sms("SM1")
    assert await ref.set_if_absent(valkey, Sms("SM2")) is False
    assert await ref.get_and_delete(valkey) == Sms("SM1")
    assert await ref.get_and_delete(valkey) is None
    assert await ref.set_if_absent(valkey, Sms("SM2")) is True
    assert await ref.exists(valkey) is True
    assert await ref.remaining_seconds(valkey) is None
    assert (await ref.delete(valkey), await ref.delete(valkey)) == (True, False)
    assert await valkey.dbsize() == 0


async def test_a_counter(valkey: Any) -> None:
    ref = COUNT.at("1")
    assert await ref.get(valkey) is None
    assert (await ref.increment(valkey), await ref.increment(valkey, 5), await ref.get(valkey)) == (1, 6, 6)
    await ref.set(valkey, -3)
    assert await ref.get(valkey) == -3


async def test_a_flag(valkey: Any) -> None:
    ref = SEEN.at("1")
    assert await ref.is_raised(valkey) is False
    assert (await ref.try_raise(valkey), await ref.try_raise(valkey)) == (True, False)
    await ref.raise_flag(valkey)
    assert await ref.is_raised(valkey) is True
    assert (await ref.lower_flag(valkey), await ref.lower_flag(valkey)) == (True, False)


async def test_a_record_is_readable_with_hgetall(valkey: Any) -> None:
    ref = RECORD.at("1")
    assert await ref.get(valkey) is None
    sms = Sms("SM1", 2, 1.5, True, State.FAILED, "a note", [1, 2], b"\xff")
    await ref.set(valkey, sms)
    assert await valkey.hgetall("record:1") == {
        b"sid": b"SM1", b"attempts": b"2", b"due_at": b"1.5", b"urgent": b"1", b"state": b"failed",
        b"note": b"a note", b"tries": b"[1,2]", b"raw": b"\xff",
    }
    assert await ref.get(valkey) == sms
    await ref.set(valkey, Sms("SM2"))
    assert b"note" not in await valkey.hgetall("record:1")
    assert await ref.get(valkey) == Sms("SM2")
    await ref.update(valkey, attempts=3, note="x")
    await ref.update(valkey, note=None)
    assert await ref.get(valkey) == Sms("SM2", attempts=3)
    for changes in ({}, {"unknown": 1}):
        with pytest.raises(DeclarationError):
            await ref.update(valkey, **changes)


async def test_a_record_of_yesterday_with_other_fields_is_still_read(valkey: Any) -> None:
    await valkey.hset("record:1", mapping={"sid": "SM1", "gone": "x"})
    assert await RECORD.at("1").get(valkey) == Sms("SM1")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"attempts": "1"}, "field sid is missing"),
        ({"sid": "a", "attempts": "many"}, "field attempts"),
        ({"sid": "a", "urgent": "maybe"}, "field urgent"),
        ({"sid": "a", "state": "lost"}, "field state"),
        ({"sid": b"\xff"}, "field sid"),
    ],
)
async def test_a_broken_record_names_its_field(valkey: Any, fields: dict[str, Any], why: str) -> None:
    await valkey.hset("record:1", mapping=fields)
    with pytest.raises(Corrupt, match=why) as caught:
        await RECORD.at("1").get(valkey)
    assert (caught.value.key, caught.value.declaration) == ("record:1", "record:{x}")


async def test_a_map_has_only_declared_fields(valkey: Any) -> None:
    ref = COUNTS.at("1")
    await ref.set(valkey, "attempted", 5)
    assert await ref.increment(valkey, "failed:timeout") == 1
    assert await ref.increment(valkey, "failed:timeout", 2) == 3
    assert await ref.all(valkey) == {"attempted": 5, "failed:timeout": 3}
    assert (await ref.get(valkey, "attempted"), await ref.get(valkey, "failed:x")) == (5, None)
    assert await ref.size(valkey) == 2
    assert await ref.remove(valkey, "attempted", "failed:x") == 1
    for undeclared in ("attempts", "failed:", "failed:a:b", ""):
        with pytest.raises(DeclarationError, match="not a declared field"):
            await ref.set(valkey, undeclared, 1)
    assert await RATES.at("1").increment(valkey, "any:field", 0.5) == 0.5
    with pytest.raises(DeclarationError, match="cannot be added to"):
        await MapKey(HERE, "texts:{x}", str, purpose="t").at("1").increment(valkey, "a")


async def test_a_list(valkey: Any) -> None:
    ref = QUEUE.at("1")
    assert await ref.push_right(valkey, Sms("b"), Sms("c")) == 2
    assert await ref.push_left(valkey, Sms("a")) == 3
    assert [sms.sid for sms in await ref.range(valkey)] == ["a", "b", "c"]
    assert [sms.sid for sms in await ref.range(valkey, 1, 1)] == ["b"]
    assert await ref.length(valkey) == 3
    assert [(await ref.pop_left(valkey)).sid, (await ref.pop_right(valkey)).sid] == ["a", "c"]
    await ref.pop_left(valkey)
    assert await ref.pop_left(valkey) is None
    with pytest.raises(DeclarationError, match="nothing to write"):
        await ref.push_right(valkey)


async def test_a_set(valkey: Any) -> None:
    ref = NAMES.at("1")
    assert (await ref.add(valkey, "a", "b"), await ref.add(valkey, "b", "c")) == (2, 1)
    assert sorted(await ref.members(valkey)) == ["a", "b", "c"]
    assert (await ref.contains(valkey, "a"), await ref.contains(valkey, "z")) == (True, False)
    assert (await ref.remove(valkey, "a", "z"), await ref.size(valkey)) == (1, 2)


async def test_a_sorted_set(valkey: Any) -> None:
    ref = DUE.at("1")
    assert (await ref.add(valkey, "a", 3), await ref.add(valkey, "a", 1.5)) == (True, False)
    assert await ref.add_many(valkey, {"b": 2.0, "c": float("inf")}) == 2
    assert await ref.range(valkey) == [("a", 1.5), ("b", 2.0), ("c", float("inf"))]
    assert await ref.range(valkey, 0, 0, descending=True) == [("c", float("inf"))]
    assert await ref.range_by_score(valkey, 1.5, 2) == [("a", 1.5), ("b", 2.0)]
    assert await ref.range_by_score(valkey, limit=1) == [("a", 1.5)]
    assert (await ref.count(valkey, 0, 10), await ref.size(valkey)) == (2, 3)
    assert (await ref.score(valkey, "b"), await ref.score(valkey, "z")) == (2.0, None)
    assert await ref.increment(valkey, "b", 0.5) == 2.5
    assert await ref.remove(valkey, "b", "z") == 1
    with pytest.raises(DeclarationError, match="must be a number"):
        await ref.add(valkey, "a", float("nan"))


async def test_a_stream_is_bounded(valkey: Any) -> None:
    ref = LOG.at("1")
    ids = [await ref.append(valkey, Sms(str(number))) for number in range(300)]
    entries = await ref.range(valkey)
    assert len(entries) < 300
    assert entries[-1] == (ids[-1], Sms("299"))
    assert await ref.range(valkey, ids[-1], limit=1) == [(ids[-1], Sms("299"))]
    assert await ref.length(valkey) == len(entries)


async def test_places(valkey: Any) -> None:
    ref = PLACES.at("1")
    assert await ref.add(valkey, "here", longitude=13.361389, latitude=38.115556) is True
    await ref.add(valkey, "there", longitude=15.087269, latitude=37.502669)
    position = await ref.position(valkey, "here")
    assert position == pytest.approx((13.361389, 38.115556), abs=1e-5)
    assert await ref.position(valkey, "nowhere") is None
    near = await ref.within(valkey, longitude=13.3, latitude=38.1, metres=20_000)
    assert [place.member for place in near] == ["here"]
    assert 0 < near[0].metres < 20_000
    both = await ref.within(valkey, longitude=13.3, latitude=38.1, metres=500_000)
    assert [place.member for place in both] == ["here", "there"]
    assert await ref.within(valkey, longitude=13.3, latitude=38.1, metres=500_000, limit=1) == near
    assert await ref.remove(valkey, "here") == 1


async def test_a_channel_reaches_its_listeners(valkey: Any) -> None:
    assert await NEWS.at("1").publish(valkey, Sms("a")) == 0
    pubsub = valkey.pubsub()
    await pubsub.subscribe("news:1")
    await pubsub.get_message(timeout=5)
    assert await NEWS.at("1").publish(valkey, Sms("a")) == 1
    message = await pubsub.get_message(timeout=5, ignore_subscribe_messages=True)
    assert NEWS.at("1").decode(message["data"]) == Sms("a")
    await pubsub.aclose()
    with pytest.raises(Corrupt) as caught:
        NEWS.at("1").decode(b"{")
    assert caught.value.raw == b"{"
    assert NEWS.at("1").decode_or_none(b"{") is None


def test_a_lock_is_only_a_name() -> None:
    assert LOCK.at("1").name(Layout.PLAIN) == b"lock:1"
    assert LOCK.lock is LockKind.SMART
    with pytest.raises(DeclarationError, match="needs an expiry"):
        LockKey(HERE, "other:{x}", LockKind.PLAIN, purpose="t")
    assert HERE.declarations[-1].pattern != "other:{x}"


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
