"""Who shares the fair queue."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.edge import PageRequest
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs import FairJobs, JobBook, Jobs, Tenants, TenantView
from keystead.jobs.keys import FAIR, SERVED
from keystead.jobs.tenants import PAUSED
from keystead.jobs.tenants_shares import count

from .test_fair import book, served


def tenants(server: Valkey, clock=None) -> Tenants:
    return Tenants(server, clock or SystemClock())


async def everyone(found: Tenants, limit: int) -> list[TenantView]:
    seen: list[TenantView] = []
    cursor = None
    for _ in range(1000):
        page = await found.list(PageRequest(limit, cursor))
        assert len(page.items) <= limit
        seen += page.items
        if (cursor := page.next_cursor) is None:
            return seen
    raise AssertionError("the list never ends")


@pytest.mark.parametrize("limit", [1, 7, 500])
async def test_each_tenant_that_holds_something_is_listed_once(server: Valkey, limit: int) -> None:
    jobs, found = FairJobs(Jobs(server)), tenants(server)
    for n in range(40):
        await jobs.enqueue(f"ready-{n}", "t.note", {}, delay_seconds=0)
        await jobs.enqueue(f"later-{n}", "t.note", {}, delay_seconds=900)
    await found.pause("quiet-and-paused")
    await found.pause("ready-3")
    listed = await everyone(found, limit)
    names = [each.tenant for each in listed]
    assert sorted(names) == sorted({*names}), "nobody changed, so nobody comes twice"
    assert set(names) == {"quiet-and-paused", *(f"{kind}-{n}" for kind in ("ready", "later") for n in range(40))}
    by_name = {each.tenant: each for each in listed}
    assert (by_name["ready-1"].ready, by_name["later-1"].delayed) == (1, 1)
    assert by_name["ready-3"].paused and not by_name["ready-1"].paused


async def test_a_large_ring_is_paged_whole(server: Valkey) -> None:
    jobs, found = FairJobs(Jobs(server)), tenants(server)
    await asyncio.gather(*(jobs.enqueue(f"t{n}", "t.note", {}) for n in range(1500)))
    listed = await everyone(found, 100)
    assert {each.tenant for each in listed} == {f"t{n}" for n in range(1500)}
    assert (await found.totals()).ready == 1500


async def test_a_paused_tenant_is_not_served_and_goes_on_in_order(server: Valkey) -> None:
    seen: list = []
    jobs, found = FairJobs(Jobs(server, book(seen))), tenants(server)
    for n in range(3):
        await jobs.enqueue("noisy", "t.note", {"tenant": "noisy", "n": n})
        await jobs.enqueue("quiet", "t.note", {"tenant": "quiet", "n": n})
    await found.pause("noisy", lasts_seconds=600)
    worker_book = book(seen)
    worker = asyncio.create_task(_run_until(server, worker_book, lambda: len(seen) == 3))
    await worker
    assert {tenant for tenant, _ in seen} == {"quiet"}
    view = await found.get("noisy")
    assert (view.ready, view.paused, [each.reason for each in view.pauses]) == (3, True, [PAUSED])
    assert await found.resume("noisy") and not await found.resume("noisy")
    await served(server, worker_book)
    assert [n for tenant, n in seen if tenant == "noisy"] == [0, 1, 2]


async def _run_until(server: Valkey, found: JobBook, done) -> None:
    from keystead.jobs import FairWorker

    worker = FairWorker(server, found)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        while not done():
            await asyncio.sleep(0.02)
    worker.stop()
    await running


async def test_resuming_leaves_other_reasons_alone(server: Valkey) -> None:
    found, now = tenants(server), SystemClock().now()
    await FAIR.blacklist.add(server, [("acme", "unpaid", 600)], now=now)
    assert not await found.resume("acme")
    await found.pause("acme")
    assert await found.resume("acme")
    assert [each.reason for each in (await found.get("acme")).pauses] == ["unpaid"]


async def test_the_busiest_come_first_with_their_share(server: Valkey) -> None:
    seen: list = []
    found = book(seen)
    jobs = FairJobs(Jobs(server, found))
    for n in range(30):
        await jobs.enqueue("noisy", "t.note", {"tenant": "noisy", "n": n})
    for n in range(10):
        await jobs.enqueue("quiet", "t.note", {"tenant": "quiet", "n": n})
    await served(server, found)
    await tenants(server).pause("asleep")
    noisy, quiet, asleep = await tenants(server).busiest(10)
    assert [each.tenant for each in (noisy, quiet, asleep)] == ["noisy", "quiet", "asleep"]
    assert (noisy.share, quiet.share, asleep.share) == (0.75, 0.25, 0.0)
    # The minute may have turned meanwhile; then a little of it no longer counts.
    assert 20 <= noisy.served <= 30 and noisy.asked == pytest.approx(noisy.served, rel=0.4)
    assert [each.tenant for each in await tenants(server).busiest(1)] == ["noisy"]


async def test_what_was_served_fades_within_two_minutes(valkey: Valkey, moving_clock) -> None:
    found = tenants(valkey, moving_clock)
    moving_clock.advance(-moving_clock.now() % 60)
    await count(valkey, SERVED, {"acme": 60, "other": 20}, now=moving_clock.now())
    assert (await found.get("acme")).served == 60
    moving_clock.advance(90)
    view = await found.get("acme")
    assert (view.served, view.share) == (30, 0.75)
    moving_clock.advance(60)
    assert (await found.get("acme")).served == 0
    moving_clock.advance(60)
    assert await valkey.keys("*") == []


async def test_dead_jobs_run_again(server: Valkey) -> None:
    seen: list = []
    found = book(seen)
    jobs = FairJobs(Jobs(server, found))
    await jobs.enqueue("acme", "t.useless", {})
    await served(server, found)
    assert (await tenants(server).get("acme")).dead == 1
    assert await tenants(server).retry_dead("acme") == 1
    view = await tenants(server).get("acme")
    assert (view.dead, view.ready) == (0, 1)
    assert await tenants(server).retry_dead("nobody") == 0


async def test_what_can_be_no_tenant_is_refused(valkey: Valkey) -> None:
    found = tenants(valkey)
    for bad in ("", "a:b", "x" * 65, "a b", "a\n"):
        with pytest.raises(Invalid):
            await found.get(bad)
        with pytest.raises(Invalid):
            await found.pause(bad)
    with pytest.raises(Invalid):
        await found.list(PageRequest(10, "nonsense"))
    with pytest.raises(Invalid):
        await found.busiest(0)
    assert not (await found.get("nobody")).known
