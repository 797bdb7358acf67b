"""The client for programs without an event loop."""

import asyncio
import multiprocessing
import threading

import pytest

from keystead import sync
from keystead.engine import NotReplicated, Valkey
from keystead.errors import Invalid, Unavailable
from keystead.jobs import JobBook, Worker, WorkerSettings


async def twice(n: int) -> int:
    return n * 2


def book() -> JobBook:
    found = JobBook()
    found.register("t.twice", twice)
    return found


async def test_a_job_is_queued_and_waited_for_from_a_thread(valkey: Valkey, valkey_server) -> None:
    def use() -> str:
        with sync.Jobs(valkey_server.url, book()) as jobs:
            handle = jobs.options(keep_seconds=60).enqueue("t.twice", n=4)
            state = handle.wait(30)
            assert handle.state() == state and not handle.cancel() and handle.is_new
            return state.result

    worker = Worker(valkey, book(), WorkerSettings(concurrency=2))
    working = asyncio.create_task(worker.run())
    assert await asyncio.to_thread(use) == "8"
    worker.stop()
    await working


def test_job_counts_as_queued_when_replicas_have_it(valkey_server) -> None:
    valkey_server.ensure_running()
    with sync.Jobs(valkey_server.url, book(), replicas=1) as jobs, pytest.raises(NotReplicated):  # the server has none
        jobs.enqueue("t.twice", n=4)


async def test_many_threads_share_a_client(valkey: Valkey, valkey_server) -> None:
    jobs = sync.Jobs(valkey_server.url, book())

    def use() -> None:
        for n in range(50):
            jobs.enqueue("t.twice", n=n)

    def run() -> None:
        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    await asyncio.to_thread(run)
    assert await valkey.llen("jobs:hot") == 400
    uids = await asyncio.to_thread(jobs.enqueue_many, "t.twice", [{"n": 1}, {"n": 2}])
    batch = await asyncio.to_thread(jobs.enqueue_batch, [("t.twice", {"n": 1})])
    assert len(uids) == 2 and batch and await valkey.llen("jobs:hot") == 403
    await asyncio.to_thread(jobs.close)
    await asyncio.to_thread(jobs.enqueue, "t.twice", n=1)
    assert await valkey.llen("jobs:hot") == 404, "after close the next use connects again"
    await asyncio.to_thread(jobs.close)


def _in_child(jobs: sync.Jobs, answer) -> None:
    answer.put(jobs.enqueue("t.twice", n=2).uid)


async def test_a_forked_process_gets_a_connection_of_its_own(valkey: Valkey, valkey_server) -> None:
    jobs = sync.Jobs(valkey_server.url, book())

    def use() -> tuple[str, str]:
        first = jobs.enqueue("t.twice", n=1).uid
        context = multiprocessing.get_context("fork")
        answer = context.Queue()
        child = context.Process(target=_in_child, args=(jobs, answer))
        child.start()
        second = answer.get(timeout=60)
        child.join()
        return first, second

    first, second = await asyncio.to_thread(use)
    assert first != second and await valkey.llen("jobs:hot") == 2
    await asyncio.to_thread(jobs.close)


def test_bad_use_is_told() -> None:
    jobs = sync.Jobs("valkey://127.0.0.1:1", book())
    with pytest.raises(Invalid, match="a pipeline belongs to an event loop"):
        jobs.options(on=None)
    with pytest.raises(Unavailable):
        jobs.enqueue("t.twice", n=1)
