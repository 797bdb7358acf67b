"""Messages per second, by channel."""

import pytest

from keystead.clock import SystemClock
from keystead.messaging.sms.stats import SENDS
from keystead.web.message_rates import MessageRateSampler, rates_between


async def test_what_is_counted_between_two_looks_becomes_rates(valkey):
    sampler = MessageRateSampler(valkey, SystemClock())
    await sampler.sample()
    assert sampler.newest is None, "one look knows no rate"
    now = SystemClock().now()
    await SENDS.tally(now).incr("queued", None, 30, at=now).incr("succeeded_pending", "queued", 20, at=now).incr(
        "succeeded_immediate", "sent", 4, at=now).store(valkey)
    await sampler.sample()
    assert sampler.newest is not None
    queued, sent, arrived = sampler.newest.by_channel["sms"]
    assert queued > sent > 0 and abs(sent / queued - 0.8) < 1e-6 and arrived == 0
    assert sampler.newest.by_channel["email"] == (0, 0, 0)
    await valkey.flushall()
    await sampler.sample()
    assert sampler.newest is None, "an emptied server sends nothing back"
    assert len(sampler.samples) == 3


@pytest.mark.cluster
async def test_what_all_lanes_count_is_one_rate(two_lanes):
    sampler, now = MessageRateSampler(two_lanes, SystemClock()), SystemClock().now()
    await sampler.sample()
    for lane, amount in zip(two_lanes.lanes, (10, 30), strict=True):
        tally = SENDS.tally(now).incr("queued", None, amount, at=now)
        await tally.incr("succeeded_pending", "queued", 10, at=now).store(lane)
    await sampler.sample()
    assert sampler.newest is not None
    queued, sent, _ = sampler.newest.by_channel["sms"]
    assert abs(sent / queued - 0.5) < 1e-6


def test_rates_are_told_by_channel_and_never_below_zero():
    found = rates_between({"sms": (1, 1, 0)}, {"sms": (5, 3, 0)}, 2.0)
    assert found is not None and found.by_channel == {"sms": (2.0, 1.0, 0.0)}
    assert rates_between({"sms": (5, 3, 0)}, {"sms": (9, 0, 0)}, 1.0) is None


async def test_two_beats_at_once_are_one_and_nobody_watching_is_none(valkey, monkeypatch):
    monkeypatch.setattr("keystead.web.message_rates.LEAST_SECONDS", 3600.0)  # whatever the machine does meanwhile
    sampler = MessageRateSampler(valkey, SystemClock())
    await sampler._beat()
    assert not sampler.samples, "nobody wants it"
    sampler.want()
    await sampler._beat()
    await sampler._beat()
    assert len(sampler.samples) == 1
