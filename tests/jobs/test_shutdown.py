"""Being asked to stop, by signals or otherwise."""

import asyncio
import os
import signal

import pytest

from keystead.clock import SystemClock
from keystead.jobs.shutdown import Shutdown, TermSignal, graceful_sleep
from keystead.testing.clock import MovableClock


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_raises_the_flag_and_nothing_else(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    shutdown = Shutdown()
    with shutdown.on_signals():
        assert not shutdown.received_term_signal()
        os.kill(os.getpid(), number)
        assert shutdown.received_term_signal()
        os.kill(os.getpid(), number)
    assert shutdown.received_term_signal() and signal.getsignal(number) is former


def test_signal_can_be_raised_where_the_program_stands() -> None:
    shutdown = Shutdown()
    with pytest.raises(TermSignal), shutdown.on_signals(raises=True):
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("the signal did not arrive")
    assert shutdown.received_term_signal() and not issubclass(TermSignal, Exception)


async def test_signal_ends_a_sleep_in_the_event_loop() -> None:
    shutdown = Shutdown()
    with shutdown.on_signals():
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            sleeping = tasks.create_task(
                graceful_sleep(3600, stopping=shutdown.received_term_signal, clock=SystemClock())
            )
            await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGTERM)
    assert sleeping.result() is False


async def test_sleep_goes_by_the_clock_it_is_given() -> None:
    clock = MovableClock(now=0.0)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        sleeping = tasks.create_task(graceful_sleep(3600, stopping=lambda: False, clock=clock))
        await asyncio.sleep(0.25)
        assert not sleeping.done()
        clock.advance(3600)
    assert sleeping.result() is True


async def test_sleep_does_not_begin_when_the_flag_is_up() -> None:
    shutdown = Shutdown()
    shutdown.request()
    assert not await graceful_sleep(0, stopping=shutdown.received_term_signal, clock=SystemClock())
    assert await graceful_sleep(0, stopping=lambda: False, clock=SystemClock())
