"""The program of the demonstration: its jobs do, count and fail as they say."""

import asyncio
from typing import Any

import pytest

from keystead.demo import program
from keystead.engine import Valkey
from keystead.jobs import GiveUp, Jobs, ProgramJobs, Worker, WorkerSettings
from keystead.jobs.context import RunningJob, running
from keystead.jobs.models import JobRecord
from keystead.testing.clock import MovableClock

NOON = 1_763_208_000.0


async def _run(valkey: Valkey, name: str, **kwargs: Any) -> None:
    clock, book = MovableClock([valkey], now=NOON), ProgramJobs.of([program]).book
    await Jobs(valkey, clock=clock).enqueue(name, **kwargs)
    worker = Worker(valkey, book, WorkerSettings(), clock=clock)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        while not worker.tally.done + worker.tally.failed + worker.tally.retried:
            await asyncio.sleep(0.02)
        worker.stop()


@pytest.mark.parametrize(("name", "kwargs", "event"), [
    ("demo.charge_card", {"order": 41}, "paid"), ("demo.charge_card", {"order": 42}, "failed"),
    ("demo.tenant.print_flyer", {"page": 1, "of": 2}, "flyers_printed"),
    ("demo.tenant.send_receipt", {"item": 5}, "receipts_sent"),
    ("demo.tenant.resize_photo", {"item": 5}, "photos_resized"), ("demo.read_invoice", {"order": 40}, "failed"),
    ("demo.sync_stock", {"order": 40}, "failed"),
])
async def test_what_a_job_does_is_counted(valkey: Valkey, name: str, kwargs: dict[str, int], event: str) -> None:
    await _run(valkey, name, **kwargs)
    counted = await program.ORDERS.read(valkey, program.ORDERS.day_of(NOON))
    assert counted.counts[event] == 1


@pytest.mark.parametrize(("name", "kwargs"), [
    ("demo.sync_stock", {"order": 40}), ("demo.fetch_exchange_rates", {"order": 5}),
    ("demo.tenant.resize_photo", {"item": 97}), ("demo.charge_card", {"order": 42}),
])
@pytest.mark.parametrize("waited_seconds", [0, 3600])
async def test_what_others_mended_goes_well_when_it_is_tried_again_later(
    valkey: Valkey, name: str, kwargs: dict[str, int], waited_seconds: int,
) -> None:
    found, clock = ProgramJobs.of([program]).book.get(name), MovableClock([valkey], now=NOON)
    assert found is not None
    record = JobRecord(name, kwargs, NOON - waited_seconds, attempt=1)
    token = running.set(RunningJob(record, "u", "", lambda: False, valkey, clock))
    try:
        if waited_seconds and name != "demo.charge_card":
            await found.function(**kwargs)
        else:
            with pytest.raises((Exception, GiveUp), match=r"answer|refused|pixels"):
                await found.function(**kwargs)
    finally:
        running.reset(token)


async def test_stock_is_written_down(valkey: Valkey) -> None:
    await _run(valkey, "demo.tenant.update_stock", item=51)
    assert await program.STOCK.at("51").get(valkey) == program.Stock(1, NOON)


def test_everything_is_declared_and_named_after_the_demo() -> None:
    found = ProgramJobs.of([program])
    assert len(found) >= 10
    assert all(job.name.startswith("demo.") for job in found.book)
    assert found.calendars
