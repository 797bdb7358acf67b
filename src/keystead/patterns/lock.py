"""Locks: what every kind shares. A task that holds a lock is told, by being cancelled, when it has lost it.

The kinds are modules of their own: ``lock_smart`` (no expiry until contested), ``lock_leased`` (expires unless
renewed; waiting in turn; fencing numbers) and ``lock_plain`` (the value 1 and an expiry).
"""

import asyncio
import math
import time
from collections.abc import Coroutine
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Self
from weakref import ReferenceType, WeakKeyDictionary, ref

from keystead.errors import Conflict, NotOwner, Unavailable
from keystead.telemetry import counts, logger

counts.describe("locks_lost", "locks that were lost while a task held them")
counts.describe("locks_not_freed", "locks that could not be given back, and end by themselves")

MARGIN = 0.1  # the part of a lease that its holder does not count on: time to stop before another may begin
WAKE_SECONDS = 0.005  # the timer for all held locks is not set more often
RETRY_SECONDS = 0.1  # between two tries to renew while the server is away

_log = logger("patterns")


class LockHeld(Conflict):
    """Someone else holds the lock. For a job that is meant to run once at a time this is a normal end."""

    def __init__(self, key: str, reason: str = "someone else holds it") -> None:
        super().__init__(f"the lock was not taken, {reason}: {key}")
        self.key = key


class LockLost(NotOwner):
    """The lock ended while it was held, so what it guarded may be running elsewhere."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"the lock was lost, {reason}: {key}")
        self.key = key


class _Watch:
    """Wakes the holdings of one event loop when they are due.

    Most locks are freed long before, so planning must cost nearly nothing: one timer serves them all.
    """

    def __init__(self) -> None:
        self._planned: set[Holding] = set()
        self._timer_at = math.inf

    def plan(self, holding: "Holding") -> None:
        self._planned.add(holding)
        if holding.due_at < self._timer_at:
            self._set_timer(holding.due_at)

    def forget(self, holding: "Holding") -> None:
        self._planned.discard(holding)

    def _set_timer(self, at: float) -> None:
        # The handle is not kept: it knows its loop, and a loop that was closed could then never be forgotten.
        self._timer_at = at
        asyncio.get_running_loop().call_later(max(0.0, at - time.monotonic()), self._wake, at)

    def _wake(self, at: float) -> None:
        if at != self._timer_at:
            return  # an earlier timer was set since
        self._timer_at = math.inf
        now = time.monotonic()
        for holding in [holding for holding in self._planned if holding.due_at <= now]:
            self._planned.discard(holding)
            holding.wake()
        if self._planned:
            soonest = min(holding.due_at for holding in self._planned)
            if soonest < self._timer_at:
                self._set_timer(max(soonest, now + WAKE_SECONDS))


_watches: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch]" = WeakKeyDictionary()
_latest: "tuple[ReferenceType[asyncio.AbstractEventLoop], _Watch] | None" = None


def _watch() -> _Watch:
    """The watch of the running loop; nearly always that of the last call."""
    global _latest
    loop, latest = asyncio.get_running_loop(), _latest
    if latest is not None and latest[0]() is loop:
        return latest[1]
    found = _watches.setdefault(loop, _Watch())
    _latest = ref(loop), found
    return found


class Holding:
    """A lock for the length of an ``async with`` block.

    The block is cancelled, and leaves with ``LockLost``, as soon as the lock is seen to be gone, or could not be
    renewed in time: always before the server can give it to another. That needs the event loop to run: code that
    computes for long without awaiting should ask ``check``, and a write that must never come too late needs a fence.
    """

    # What most holdings never change stands here once; a lock is taken too often to set it each time.
    due_at = math.inf  # when to look after the lock again, on the monotonic clock
    _ends_at = math.inf  # on the monotonic clock; until then the lock is ours whatever happens
    _lost: str | None = None
    _task: asyncio.Task[object] | None = None
    _cancelling = 0
    _watch: _Watch | None = None
    _renewal: asyncio.Task[None] | None = None
    _beside: AbstractSet[asyncio.Task[None]] = frozenset()

    def __init__(self, key: str, *, every_seconds: float = math.inf) -> None:
        self.key = key
        self._every_seconds = every_seconds

    @property
    def remaining_seconds(self) -> float:
        """For how long the lock is surely held, without renewing it; 0 outside of the block."""
        if self._task is None or self._lost is not None:
            return 0.0
        return max(0.0, self._ends_at - time.monotonic())

    @property
    def is_held(self) -> bool:
        return self.remaining_seconds > 0

    def check(self) -> None:
        """Raise ``LockLost`` unless the lock is surely held now."""
        if not self.is_held:
            raise LockLost(self.key, self._lost or ("its time ran out" if self._task else "this is not its block"))

    # -- what a kind does -------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        """Take the lock and set ``_ends_at``, or raise ``LockHeld``."""
        raise NotImplementedError

    async def _renew(self) -> float | None:
        """Prolong or look: until when the lock is ours, on the monotonic clock; None if it is gone."""
        raise NotImplementedError

    async def _release(self) -> str | None:
        """Give the lock back; says why, if it surely was not ours to the end."""
        raise NotImplementedError

    # -- the block --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._acquire()
        self._enter()
        return self

    def _enter(self) -> None:
        """The lock is ours: from now on it is looked after, and this task is told if it is lost."""
        self._look_after(min(time.monotonic() + self._every_seconds, self._ends_at))

    def _look_after(self, due_at: float) -> None:
        self._task = task = asyncio.current_task()
        assert task is not None
        self._cancelling = task.cancelling()
        self._watch = watch = _watch()
        self.due_at = due_at
        if due_at < math.inf:
            watch.plan(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        self._plan(math.inf)
        if self._beside:
            for beside in self._beside:
                beside.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)
        if self._lost is None:
            await self._give_back(error)
            return
        task.uncancel()
        if not isinstance(error, asyncio.CancelledError):
            # The block ended before the cancellation reached it; take it in, or it would strike whoever comes next.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if task.cancelling() > self._cancelling:
                    raise
        if error is None or (isinstance(error, asyncio.CancelledError) and task.cancelling() <= self._cancelling):
            raise LockLost(self.key, self._lost) from error

    async def _give_back(self, error: BaseException | None) -> None:
        """Free the lock. A block that went well is told at the latest now if another may have begun meanwhile."""
        try:
            lost = await self._release()
        except Unavailable as away:
            self._could_not_free(away)
            return
        if lost is not None:
            self._tell_of_loss(lost)
            if error is None:
                raise LockLost(self.key, lost)

    def _why_not_ours(self) -> str | None:
        """What it means that there was nothing of ours to free: too late, or freed by a try whose answer was lost."""
        if time.monotonic() >= self._ends_at:
            return "its time ran out before the block ended"
        _log.warning("lock was not ours any more", key=self.key)
        return None

    def _could_not_free(self, error: Unavailable) -> None:
        """The work is done and the lock ends by itself, so this is no error of the block."""
        counts.add("locks_not_freed")
        _log.warning("lock not freed", key=self.key, reason=str(error))

    # -- the watch --------------------------------------------------------------------------------------------------

    def _plan(self, seconds: float) -> None:
        assert self._watch is not None
        if seconds < math.inf:
            self.due_at = time.monotonic() + seconds
            self._watch.plan(self)
        else:
            self._watch.forget(self)

    def wake(self) -> None:
        """Called when due: renew, or find that it is too late."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            self._lose("its time ran out before it could be renewed")
            return
        if self._every_seconds < math.inf and (self._renewal is None or self._renewal.done()):
            self._renewal = self._run_beside(self._keep())
        self._plan(left)

    async def _keep(self) -> None:
        while True:
            try:
                ends_at = await self._renew()
                break
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
        if self._task is None or self._lost is not None:
            return
        if ends_at is None:
            self._lose("it is gone or someone else's")
            return
        self._ends_at = ends_at
        self._plan(min(self._every_seconds, ends_at - time.monotonic()))

    def _run_beside(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Run something while the block runs; it is stopped and awaited when the block ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside = self._beside | {task}
        task.add_done_callback(self._ended_beside)
        return task

    def _ended_beside(self, task: "asyncio.Task[None]") -> None:
        self._beside = self._beside - {task}
        if not task.cancelled() and (error := task.exception()) is not None:
            self._lose(f"looking after it failed: {error}")

    def _lose(self, reason: str) -> None:
        if self._task is None or self._lost is not None:
            return
        self._lost = reason
        self._plan(math.inf)
        self._tell_of_loss(reason)
        self._task.cancel()

    def _tell_of_loss(self, reason: str) -> None:
        counts.add("locks_lost")
        _log.warning("lock lost", key=self.key, reason=reason)
