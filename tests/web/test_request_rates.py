"""How many requests are answered each second."""

import asyncio

from keystead.clock import SystemClock
from keystead.telemetry import Counts
from keystead.web import request_rates
from keystead.web.request_rates import RequestRateSampler


async def test_rates_are_what_was_answered_between_two_looks(monkeypatch):
    monkeypatch.setattr(request_rates, "LEAST_SECONDS", 0.01)
    counts = Counts()
    counts.add("http_requests", 1000, status="2xx")
    sampler = RequestRateSampler(counts, SystemClock())
    await sampler.sample()
    assert sampler.newest is None, "what was answered before anyone looked is no rate"
    counts.add("http_requests", 30, status="2xx")
    counts.add("http_requests", 10, status="5xx")
    await asyncio.sleep(0.05)
    await sampler.sample()
    assert sampler.newest is not None
    assert 0 < sampler.newest.answered <= 40 / 0.04
    assert sampler.newest.answered == 4 * sampler.newest.failed


async def test_two_looks_at_once_are_one():
    counts = Counts()
    sampler = RequestRateSampler(counts, SystemClock())
    await sampler.sample()
    counts.add("http_requests", status="2xx")
    await sampler.sample()
    assert not sampler.samples
