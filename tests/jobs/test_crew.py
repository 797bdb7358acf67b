"""The crew: every kind of work goes on, whatever one of them does."""

import asyncio

import pytest

from keystead.jobs import crew as module
from keystead.jobs.crew import Crew, pause, unless_stopped
from keystead.telemetry import counts


class Steady:
    def __init__(self) -> None:
        self.going, self.ended = asyncio.Event(), False

    async def work(self, stop: asyncio.Event) -> None:
        self.going.set()
        await stop.wait()
        self.ended = True


class Failing:
    def __init__(self, times: int) -> None:
        self.left, self.begun, self.steady = times, 0, asyncio.Event()

    async def work(self, stop: asyncio.Event) -> None:
        self.begun += 1
        if self.left:
            self.left -= 1
            raise RuntimeError("broken")
        self.steady.set()
        await stop.wait()


class Idle:
    begun = 0

    async def work(self, stop: asyncio.Event) -> None:
        self.begun += 1


async def test_one_that_fails_is_begun_again_and_disturbs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.001)
    before = counts.value("crew_failures", work="Failing")
    steady, failing, idle, stop = Steady(), Failing(3), Idle(), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(Crew(steady, failing, idle).work(stop))
        await steady.going.wait()
        await failing.steady.wait()
        assert not steady.ended
        stop.set()
    assert (steady.ended, failing.begun, idle.begun) == (True, 4, 1)
    assert counts.value("crew_failures", work="Failing") - before == 3


async def test_one_that_always_fails_does_not_hinder_the_end() -> None:
    failing, stop = Failing(10**9), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(Crew(failing).work(stop))
        while not failing.begun:
            await asyncio.sleep(0)
        stop.set()
    assert failing.begun == 1


async def test_pause_ends_with_the_stop_or_the_time() -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(60):
        await pause(0.01, stop)
        await pause(-1, stop)
        stop.set()
        await pause(3600, stop)


async def test_waiting_ends_with_its_answer_its_error_or_the_stop() -> None:
    stop, cancelled = asyncio.Event(), asyncio.Event()

    async def answer() -> int:
        return 7

    async def fails() -> int:
        raise OSError("gone")

    async def waits() -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()
        return 1

    async with asyncio.timeout(60):
        assert await unless_stopped(stop, answer()) == 7
        with pytest.raises(OSError, match="gone"):
            await unless_stopped(stop, fails())
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(unless_stopped(stop, waits()))
            await asyncio.sleep(0.01)
            stop.set()
        assert waiting.result() is None and cancelled.is_set()
        assert await unless_stopped(stop, waits()) is None
