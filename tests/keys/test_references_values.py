"""Values, counters and flags on a real server."""

from typing import Any

import msgspec

from .sample_room import COUNT, NAME, SEEN, Sms


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
