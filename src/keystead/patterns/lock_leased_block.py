"""The leased lock for a block: taken at once or in turn, renewed all the while, freed at the end."""

import asyncio
import contextlib
import math
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import ReplyLost, Unavailable
from keystead.patterns.lock import MARGIN, Holding, LockHeld
from keystead.patterns.lock_fence import Fenced
from keystead.patterns.lock_lease import LockLease, Place, has_compare_and_delete, new_holder
from keystead.telemetry import counts

if TYPE_CHECKING:
    from keystead.patterns.lock_leased import LeasedLockAt

counts.describe("lock_waits", "times a task had to wait for a lock, by lock")
counts.describe("lock_wait_seconds", "how long tasks waited for a lock in all, by lock")
counts.describe("lock_refusals", "times a lock was not had, by lock")

RENEWALS = 3  # in one lease
ASK_SECONDS = 1.0
ASK_AT_LEAST_EVERY_SECONDS = 10.0


class LeaseHolding(Holding):
    """A leased lock for a block. ``fence`` is the number of this holder, 0 where holders are not numbered."""

    def __init__(
        self, lock: "LeasedLockAt", valkey: Valkey, clock: Clock, patience_seconds: float | None
    ) -> None:
        super().__init__(lock.reference.logical, every_seconds=lock.lease_seconds / RENEWALS)
        self._lock = lock
        self._valkey = valkey
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._lease: LockLease | None = None

    @property
    def lease(self) -> LockLease:
        assert self._lease is not None, "only inside the block"
        return self._lease

    @property
    def fence(self) -> int:
        return self.lease.fence

    def fenced(self, on: ScriptRunner) -> Fenced:
        """An executor whose writes are refused once another holder was numbered."""
        return self._lock.fenced(on, self.lease)

    async def __aenter__(self) -> Self:
        """The same as for every lock, written out for the usual case: nobody holds it, holders are not numbered."""
        lock, valkey = self._lock, self._valkey
        if lock.is_numbered:
            return await super().__aenter__()
        me, asked_at = new_holder(), time.monotonic()
        value, command = lock.taking(valkey.layout, me, self._clock.now())
        try:
            found = await valkey.call(command, repeat=True)
        except (asyncio.CancelledError, ReplyLost):
            await self._leave(me)  # it may be ours without our knowing
            raise
        if found is None or found.startswith(me):  # what a lost first try left behind is ours as well
            self._note(LockLease(me, value, 0, asked_at + lock.lease_seconds))
            self._look_after(asked_at + self._every_seconds)
        else:
            await self._wait_or_refuse(me)
            self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        valkey, watch, value = self._valkey, self._watch, self.lease.value
        if self._lost is None and not self._beside and value is not None and has_compare_and_delete(valkey):
            self._task = None
            assert watch is not None
            watch.forget(self)
            try:
                if not await valkey.call(self._lock.freeing(valkey.layout, value), repeat=True):
                    await self._give_back(error)  # someone waits for it, or it was lost
            except Unavailable as away:
                self._could_not_free(away)
        else:
            await super().__aexit__(kind, error, trace)

    async def _acquire(self) -> None:
        me = new_holder()
        try:
            lease = await self._lock.try_acquire(self._valkey, now=self._clock.now(), me=me)
        except (asyncio.CancelledError, ReplyLost):
            await self._leave(me)  # it may be ours without our knowing
            raise
        if lease is None:
            await self._wait_or_refuse(me)
        else:
            self._note(lease)

    async def _wait_or_refuse(self, me: bytes) -> None:
        lease, pattern, began = None, self._lock.reference.declaration.pattern, time.monotonic()
        if self._patience_seconds != 0:
            lease = await self._wait_for_turn(me, self._patience_seconds)
            counts.add("lock_waits", lock=pattern)
            counts.add("lock_wait_seconds", time.monotonic() - began, lock=pattern)
        if lease is None:
            counts.add("lock_refusals", lock=pattern)
            raise LockHeld(self.key)
        self._note(lease)

    async def _leave(self, me: bytes) -> None:
        with contextlib.suppress(Unavailable):
            await self._lock.leave(self._valkey, me, now=self._clock.now())

    async def _wait_for_turn(self, me: bytes, patience_seconds: float | None) -> LockLease | None:
        """Stand in the queue until the lock is handed over to us, or patience ends."""
        had, deadline = False, math.inf if patience_seconds is None else time.monotonic() + patience_seconds
        try:
            async with self._valkey.hub().subscribe(self._lock.turn_of(me)) as listener:
                while isinstance(answer := await self._lock.ask(self._valkey, me, now=self._clock.now()), Place):
                    # A message that got lost, or a holder that died, is noticed by asking again; those far behind
                    # need not be quick.
                    pause = min(ASK_SECONDS + answer.ahead / 10, ASK_AT_LEAST_EVERY_SECONDS)
                    if answer.ahead == 0:
                        pause = min(pause, answer.left_seconds + 0.005)
                    pause = min(pause, deadline - time.monotonic())
                    if pause <= 0:
                        return None
                    await listener.get(pause)
            had = True
            return answer
        finally:
            if not had:
                await self._leave(me)

    def _note(self, lease: LockLease) -> float:
        self._lease = lease
        self._ends_at = lease.ends_at - MARGIN * self._lock.lease_seconds
        return self._ends_at

    async def _renew(self) -> float | None:
        lease = await self._lock.renew(self._valkey, self.lease)
        return None if lease is None else self._note(lease)

    async def _release(self) -> str | None:
        freed = await self._lock.leave(self._valkey, self.lease.me, now=self._clock.now())
        return None if freed else self._why_not_ours()
