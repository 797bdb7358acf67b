"""Streams, places and channels on a real server."""

from typing import Any

import pytest

from keystead.errors import Corrupt

from .sample_room import LOG, NEWS, PLACES, Sms


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
    await pubsub.get_message(timeout=20)
    assert await NEWS.at("1").publish(valkey, Sms("a")) == 1
    message = await pubsub.get_message(timeout=20, ignore_subscribe_messages=True)
    assert NEWS.at("1").decode(message["data"]) == Sms("a")
    await pubsub.aclose()
    with pytest.raises(Corrupt) as caught:
        NEWS.at("1").decode(b"{")
    assert caught.value.raw == b"{"
    assert NEWS.at("1").decode_or_none(b"{") is None
