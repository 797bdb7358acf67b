"""How many jobs end each second."""

import asyncio

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.jobs import Inspection, Tenants
from keystead.jobs.keys import FAIR, TOTALS
from keystead.web import job_rates as job_rates_module
from keystead.web.job_rates import JobRates, JobRateSampler


def sampler_on(valkey):
    clock = SystemClock()
    return JobRateSampler(Inspection(valkey, clock), clock)


async def add(valkey, **counts):
    for name, count in counts.items():
        await valkey.hincrby(TOTALS.at().name(valkey.layout), name, count)


async def test_rates_are_what_ended_between_two_looks(valkey):
    sampler = sampler_on(valkey)
    await add(valkey, done=1000)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await sampler.sample()
    assert sampler.newest is None, "what ended before anyone looked is no rate"
    await add(valkey, done=40, failed=20, retried=10)
    await asyncio.sleep(0.05)
    await sampler.sample()
    took = loop.time() - before
    assert sampler.newest is not None
    assert 40 / took <= sampler.newest.done <= 40 / 0.04
    assert sampler.newest.done / sampler.newest.failed == 2 and sampler.newest.failed / sampler.newest.retried == 2


async def test_jobs_of_tenants_are_counted_beside_the_others(valkey):
    clock = SystemClock()
    sampler = JobRateSampler(Inspection(valkey, clock), clock, Tenants(valkey, clock))
    await sampler.sample()
    await valkey.hincrby(FAIR.keys.names(valkey.layout).base[3], "acked", 5)
    await asyncio.sleep(0.05)
    await sampler.sample()
    assert sampler.newest is not None and sampler.newest.tenants > 0 == sampler.newest.done


async def test_nothing_ending_reads_as_zero(valkey):
    sampler = sampler_on(valkey)
    await sampler.sample()
    await sampler.sample()
    assert sampler.newest == JobRates(0, 0, 0)


async def test_emptied_server_leaves_a_gap_not_a_negative_rate(valkey):
    sampler = sampler_on(valkey)
    await add(valkey, done=10)
    await sampler.sample()
    await valkey.flushall()
    await sampler.sample()
    assert sampler.newest is None
    await sampler.sample()
    assert sampler.newest == JobRates(0, 0, 0)


async def test_something_else_under_the_name_is_a_gap(valkey):
    sampler = sampler_on(valkey)
    await sampler.sample()
    await valkey.set(TOTALS.at().name(valkey.layout), "x")
    await sampler.sample()
    assert sampler.newest is None


async def test_server_that_is_away_is_a_gap(valkey, fault_proxy, monkeypatch):
    monkeypatch.setattr(job_rates_module, "ANSWER_SECONDS", 0.2)
    proxy = await fault_proxy()
    client = await connect(proxy.url)
    try:
        sampler = sampler_on(client)
        await sampler.sample()
        proxy.half_open()
        await sampler.sample()
        assert len(sampler.samples) == 2 and sampler.newest is None
        await proxy.restore()
        async with asyncio.timeout(60):
            while sampler.newest is None:
                await sampler.sample()
    finally:
        await client.aclose()
