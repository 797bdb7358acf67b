"""What every held lock does for its block, whatever the kind."""

import asyncio
import gc
import math
import time
import weakref

import pytest

from keystead.errors import Conflict, NotOwner, Unavailable
from keystead.patterns import lock
from keystead.patterns.lock import Holding, LockHeld, LockLost
from keystead.telemetry import counts

from .lock_room import patched


class Scripted(Holding):
    """A lock whose renewals are told in advance: seconds from now, None for gone, an error to raise."""

    def __init__(self, first: float, *renewals: object, every: float = 0.02) -> None:
        super().__init__("a:lock", every_seconds=every)
        self._first = first
        self._renewals = list(renewals)
        self.asked = 0
        self.released = 0

    async def _acquire(self) -> None:
        self._ends_at = time.monotonic() + self._first

    async def _renew(self) -> float | None:
        self.asked += 1
        answer = self._renewals.pop(0) if self._renewals else math.inf
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else time.monotonic() + float(answer)

    async def _release(self) -> None:
        self.released += 1


async def test_block_that_ends_in_time_frees_its_lock_and_is_not_disturbed() -> None:
    async with Scripted(60.0, 60.0, 60.0) as held:
        async with asyncio.timeout(20):
            while not held.asked:
                await asyncio.sleep(0.01)
        assert held.is_held
    assert held.released == 1
    await asyncio.sleep(0.05)
    assert asyncio.current_task().cancelling() == 0


async def test_lock_counts_as_held_only_inside_its_block() -> None:
    held = Scripted(60.0)
    assert not held.is_held
    with pytest.raises(LockLost, match="not its block: a:lock"):
        held.check()
    async with held:
        held.check()
    assert not held.is_held and held.remaining_seconds == 0


def test_a_loop_that_was_closed_is_forgotten() -> None:
    """Also one whose last lock left its timer behind."""
    async def holds() -> weakref.ref:
        async with Scripted(60.0, every=30.0):
            return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(holds())
    gc.collect()
    assert loop() is None


async def test_a_lock_that_is_due_sooner_is_not_kept_waiting_by_another() -> None:
    async with Scripted(600.0, every=500.0) as patient, Scripted(60.0, 60.0, every=0.02) as hasty:
        async with asyncio.timeout(20):
            while hasty.asked < 2:
                await asyncio.sleep(0.01)
        assert patient.asked == 0


async def test_renewal_that_finds_the_lock_gone_cancels_the_block() -> None:
    lost = counts.value("locks_lost")
    with pytest.raises(LockLost, match="gone or someone else's: a:lock"):
        async with Scripted(60.0, 60.0, None) as held:
            await asyncio.sleep(60)
    assert held.released == 0 and not held.is_held
    assert counts.value("locks_lost") == lost + 1
    assert asyncio.current_task().cancelling() == 0


async def test_renewal_that_fails_is_tried_again_until_the_time_is_over() -> None:
    began = time.monotonic()
    with patched(lock, RETRY_SECONDS=0.01), pytest.raises(LockLost, match="its time ran out"):
        async with Scripted(1.5, *[Unavailable("away")] * 1000) as held:
            await asyncio.sleep(60)
    assert 1.4 < time.monotonic() - began < 30
    assert held.asked > 1


async def test_renewal_that_succeeds_at_last_saves_the_lock() -> None:
    async with Scripted(3.0, Unavailable("away"), 90.0) as held:
        async with asyncio.timeout(20):
            while held.remaining_seconds <= 3.0:
                await asyncio.sleep(0.01)
        held.check()
    assert held.asked >= 2


async def test_unexpected_error_of_a_renewal_counts_as_loss() -> None:
    with pytest.raises(LockLost, match="looking after it failed: no such thing"):
        async with Scripted(60.0, RuntimeError("no such thing")):
            await asyncio.sleep(60)


async def test_cancellation_from_outside_stays_a_cancellation_and_frees_the_lock() -> None:
    held = Scripted(60.0)

    async def body() -> None:
        async with held:
            await asyncio.sleep(60)

    task = asyncio.create_task(body())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert held.released == 1


async def test_error_of_the_block_goes_through_and_frees_the_lock() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Scripted(5.0) as held:
            raise ZeroDivisionError
    assert held.released == 1


async def test_block_that_ends_before_it_hears_of_the_loss_is_still_told() -> None:
    with pytest.raises(LockLost):
        async with Scripted(0.03, every=math.inf) as held:
            await asyncio.sleep(0)
            time.sleep(0.05)  # a block that does not let the loop run
            held.wake()
    await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0


async def test_loss_inside_a_timeout_does_not_confuse_the_timeout() -> None:
    with pytest.raises(LockLost):
        async with asyncio.timeout(60), Scripted(60.0, None):
            await asyncio.sleep(60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), Scripted(60.0):
            await asyncio.sleep(60)


async def test_lock_that_cannot_be_given_back_does_not_undo_the_work() -> None:
    class Away(Scripted):
        async def _release(self) -> None:
            raise Unavailable("away")

    before = counts.value("locks_not_freed")
    async with Away(5.0):
        pass
    assert counts.value("locks_not_freed") == before + 1


def test_errors_stand_in_the_tree() -> None:
    assert isinstance(LockHeld("a"), Conflict) and LockHeld("a").key == "a"
    assert isinstance(LockLost("a", "why"), NotOwner) and "why: a" in str(LockLost("a", "why"))
