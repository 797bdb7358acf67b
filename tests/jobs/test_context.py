"""What a running job knows of itself."""

import asyncio

import pytest

from keystead.engine import Valkey
from keystead.errors import NotFound
from keystead.jobs import JobBook, Jobs, RunningJob, Worker, current_job
from keystead.jobs.context import running
from keystead.jobs.models import JobRecord
from keystead.testing.clock import MovableClock


def test_outside_a_job_there_is_none() -> None:
    with pytest.raises(NotFound, match="here no job is running"):
        current_job()


def test_it_knows_name_attempt_and_whether_to_stop() -> None:
    stopping: list[bool] = []
    token = running.set(RunningJob(JobRecord("t.x", {}, 1.0, "u", 2), "u", "mail", lambda: bool(stopping)))
    try:
        job = current_job()
        assert (job.name, job.attempt, job.queue, job.stopping) == ("t.x", 3, "mail", False)
        stopping.append(True)
        assert job.stopping
    finally:
        running.reset(token)


def test_without_a_worker_there_is_no_connection_but_a_time() -> None:
    job = RunningJob(JobRecord("t.x", {}, 1.0, "u"), "u", "", lambda: False)
    with pytest.raises(NotFound, match="without a worker"):
        _ = job.valkey
    assert job.now() > 1e9


async def test_a_job_has_the_connection_and_the_time_of_its_worker(valkey: Valkey) -> None:
    found: list[tuple[bool, float]] = []

    async def look() -> None:
        found.append((current_job().valkey is valkey, current_job().now()))
        worker.stop()

    book = JobBook()
    book.register("t.look", look)
    worker = Worker(valkey, book, clock=MovableClock(now=1_700_000_000))
    await Jobs(valkey, clock=MovableClock(now=1_700_000_000)).enqueue("t.look")
    async with asyncio.timeout(20):
        await worker.run()
    assert found == [(True, 1_700_000_000)]
