"""One look per second, shared by all."""

import asyncio

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.web import sampler as sampler_module
from keystead.web.sampler import KEPT_SAMPLES, RateSample, Sampler


async def test_rate_is_what_was_sent_between_two_looks(valkey):
    sampler = Sampler(valkey, SystemClock())
    await sampler.sample()
    assert sampler.samples[-1].commands_per_second is None
    loop = asyncio.get_running_loop()
    before = loop.time()
    for _ in range(500):
        await valkey.get("x")
    await sampler.sample()
    took = loop.time() - before
    assert 500 / took * 0.8 < sampler.samples[-1].commands_per_second < 500 / took * 2


async def test_idle_server_reads_as_idle(valkey):
    sampler = Sampler(valkey, SystemClock())
    for _ in range(3):
        await sampler.sample()
    assert sampler.samples[-1].commands_per_second == 0


async def test_gap_while_the_server_is_away_and_recovery_by_itself(fault_proxy, monkeypatch):
    monkeypatch.setattr(sampler_module, "ANSWER_SECONDS", 0.2)
    proxy = await fault_proxy()
    valkey = await connect(proxy.url)
    try:
        sampler = Sampler(valkey, SystemClock())
        await sampler.sample()
        proxy.half_open()
        await sampler.sample()
        since = sampler.away_since
        await sampler.sample()
        assert sampler.away_since == since is not None
        assert sampler.problem and sampler.facts is not None
        assert sampler.samples[-1].commands_per_second is None and sampler.samples[-1].memory_bytes is None
        await proxy.restore()
        async with asyncio.timeout(30):
            while sampler.away_since is not None:
                await sampler.sample()
        await sampler.sample()
        assert sampler.problem is None and sampler.samples[-1].commands_per_second is not None
    finally:
        await valkey.aclose()


async def test_restarted_server_leaves_a_gap_not_a_negative_rate(valkey):
    sampler = Sampler(valkey, SystemClock())
    await sampler.sample()
    sampler._last = (sampler._last[0], 10**12)
    await sampler.sample()
    assert sampler.samples[-1].commands_per_second is None


async def test_history_is_bounded(valkey):
    sampler = Sampler(valkey, SystemClock())
    sampler.samples.extend(RateSample(at, 1.0, 1) for at in range(KEPT_SAMPLES + 5))
    await sampler.sample()
    assert len(sampler.samples) == KEPT_SAMPLES


async def test_beat_goes_on_until_cancelled(valkey, monkeypatch):
    monkeypatch.setattr(sampler_module, "EVERY_SECONDS", 0.01)
    sampler = Sampler(valkey, SystemClock())
    task = asyncio.ensure_future(sampler.run())
    async with asyncio.timeout(30):
        while len(sampler.samples) < 5:
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
