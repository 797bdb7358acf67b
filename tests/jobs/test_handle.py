"""Handles: states, waiting, batches."""

import pytest

from keystead.engine import Valkey
from keystead.errors import NotFound
from keystead.jobs import BatchHandle, JobBook, Jobs

from .beside import at_work


async def twice(n: int) -> int:
    return n * 2


@pytest.fixture
def book() -> JobBook:
    book = JobBook()
    book.register("t.twice", twice)
    return book


async def test_a_job_that_is_not_kept_has_no_state(server: Valkey, book: JobBook) -> None:
    handle = await Jobs(server, book).enqueue("t.twice", n=1)
    assert await handle.state() is None
    with pytest.raises(NotFound, match="enqueue it with options"):
        await handle.wait(5)


async def test_waiting_ends_with_the_job_or_the_time(server: Valkey, book: JobBook) -> None:
    jobs = Jobs(server, book).options(done=True)
    handle = await jobs.enqueue("t.twice", n=4)
    with pytest.raises(TimeoutError):
        await handle.wait(0.2)
    async with at_work(server, book):
        assert (await handle.wait(30)).result == "8"
        assert (await jobs.handle(handle.uid).wait(30)).status == "succeeded", "a late one reads the state"


async def test_a_batch_that_is_not_known_says_so(server: Valkey) -> None:
    with pytest.raises(NotFound, match="batch b1 is not known"):
        await BatchHandle("b1", "", server).progress()
