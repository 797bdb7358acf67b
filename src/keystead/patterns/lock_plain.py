"""The plain lock: the value 1 and an expiry. For short work that may, at worst, be done twice."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Unpack

from keystead.clock import Clock
from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import Exactly, Keyspace, LockKey, LockKind, LockRef, Value
from keystead.patterns.facts import PatternFacts
from keystead.patterns.lock import MARGIN, Holding, LockHeld

ACQUIRE = Script("keystead.patterns", "scripts/lock/plain_acquire.lua")
RELEASE = Script("keystead.patterns", "scripts/lock/plain_release.lua")

SPIN_SECONDS = 0.1


@dataclass(slots=True, eq=False)
class PlainHold:
    """Proof of having taken a plain lock. ``ends_ms`` is its end by the server's clock, which tells holders apart."""

    acquired_at: float
    ends_ms: int
    ends_at: float  # on the monotonic clock, counted from before the lock was asked for
    is_freed: bool = False


class PlainLock:
    """A lock that holds for ``lease_seconds`` and is not renewed.

    Declares one key. Its value is ``1``, so a reader only tests whether it is there.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, lease_seconds: float, **facts: Unpack[PatternFacts]
    ) -> None:
        self.lease_seconds = lease_seconds
        self.key = LockKey(
            keyspace, pattern, LockKind.PLAIN, ttl=Exactly(lease_seconds),
            scripts=("lock/plain_acquire.lua", "lock/plain_release.lua"), **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "PlainLockAt":
        return PlainLockAt(self, self.key.at(*variables, **named))


class PlainLockAt:
    """One plain lock."""

    __slots__ = ("_lock", "reference")

    def __init__(self, lock: PlainLock, reference: LockRef) -> None:
        self._lock = lock
        self.reference = reference

    @property
    def lease_seconds(self) -> float:
        return self._lock.lease_seconds

    def try_acquire(self, on: ScriptRunner, *, now: float) -> Awaitable[PlainHold | None]:
        """Take the lock for its whole time, or None when it is held. One atomic step; never waits."""
        ends_at = time.monotonic() + self._lock.lease_seconds

        def read(ends_ms: int) -> PlainHold | None:
            return PlainHold(now, ends_ms, ends_at) if ends_ms else None

        return ACQUIRE(on, keys=[self.reference], args=[round(self._lock.lease_seconds * 1000)], decode=read)

    def release(self, on: ScriptRunner, hold: PlainHold, *, now: float) -> Awaitable[bool]:
        """Free the lock before its time is over; says whether it was still this holder's.

        A lock that has run out and was taken by another is never touched, however late the command arrives.
        """
        run_out = now - hold.acquired_at >= self._lock.lease_seconds or time.monotonic() >= hold.ends_at
        if hold.is_freed or run_out:
            return _not_ours()
        hold.is_freed = True  # once asked for, whatever becomes of the answer: a second time could hit another
        return RELEASE(on, keys=[self.reference], args=[hold.ends_ms], decode=bool)

    def hold(self, on: ScriptRunner, clock: Clock, *, patience_seconds: float = 0.0) -> "PlainHolding":
        """The lock for a block, which is cancelled when the time is over.

        Asks again every 0.1 s for up to ``patience_seconds`` while it is taken, then raises ``LockHeld``. Who asks
        first after it was freed has it; to wait in turn choose a leased lock.
        """
        return PlainHolding(self, on, clock, patience_seconds)


class PlainHolding(Holding):
    """A plain lock for a block."""

    def __init__(self, lock: PlainLockAt, on: ScriptRunner, clock: Clock, patience_seconds: float) -> None:
        super().__init__(lock.reference.logical)
        self._lock = lock
        self._on = on
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._hold: PlainHold | None = None

    async def _acquire(self) -> None:
        deadline = time.monotonic() + self._patience_seconds
        while (hold := await self._lock.try_acquire(self._on, now=self._clock.now())) is None:
            pause = min(SPIN_SECONDS, deadline - time.monotonic())
            if pause <= 0:
                raise LockHeld(self.key)
            await asyncio.sleep(pause)
        self._hold = hold
        self._ends_at = hold.ends_at - MARGIN * self._lock.lease_seconds

    async def _release(self) -> str | None:
        assert self._hold is not None
        freed = await self._lock.release(self._on, self._hold, now=self._clock.now())
        return None if freed else self._why_not_ours()


async def _not_ours() -> bool:
    return False
