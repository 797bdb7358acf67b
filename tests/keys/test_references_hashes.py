"""Records and maps on a real server."""

from typing import Any

import pytest

from keystead.errors import Corrupt, DeclarationError
from keystead.keys import Keyspace, MapKey
from keystead.keys.references_hashes import as_dict

from .sample_room import COUNTS, RATES, RECORD, Sms, State


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
    assert await ref.increment(valkey, "failed:timeout", 2.0) == 3
    with pytest.raises(DeclarationError, match="holds integers"):
        await ref.increment(valkey, "failed:timeout", 0.5)
    assert await ref.all(valkey) == {"attempted": 5, "failed:timeout": 3}
    assert (await ref.get(valkey, "attempted"), await ref.get(valkey, "failed:x")) == (5, None)
    assert await ref.size(valkey) == 2
    assert await ref.remove(valkey, "attempted", "failed:x") == 1
    for undeclared in ("attempts", "failed:", "failed:a:b", ""):
        with pytest.raises(DeclarationError, match="not a declared field"):
            await ref.set(valkey, undeclared, 1)
    assert await RATES.at("1").increment(valkey, "any:field", 0.5) == 0.5
    with pytest.raises(DeclarationError, match="cannot be added to"):
        await MapKey(Keyspace("tests"), "texts:{x}", str, purpose="t").at("1").increment(valkey, "a")


def test_maps_of_either_protocol() -> None:
    assert as_dict([b"a", b"1", b"b", b"2"]) == as_dict({b"a": b"1", b"b": b"2"})
    assert as_dict([]) == {}
