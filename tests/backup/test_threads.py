"""Threads that are waited for."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

from keystead.backup.threads import Stop, entered, in_thread
from keystead.errors import Unavailable


async def test_who_is_cancelled_leaves_when_the_thread_has_ended():
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        go_on.wait(20)
        ended.append(True)

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_a_thread_is_told_that_nobody_wants_its_work():
    begun, stop = threading.Event(), Stop()

    def work():
        begun.set()
        while True:
            stop.check()

    task = asyncio.ensure_future(in_thread(work, stop=stop))
    await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(Unavailable):
        stop.check()


async def test_a_block_ends_also_when_it_is_cancelled_while_it_begins():
    begun, go_on, steps = threading.Event(), threading.Event(), []

    @contextmanager
    def block():
        begun.set()
        go_on.wait(20)
        steps.append("begun")
        try:
            yield 1
        finally:
            steps.append("ended")

    async def use():
        async with entered(block()):
            steps.append("used")

    task = asyncio.ensure_future(use())
    await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["begun", "ended"]
