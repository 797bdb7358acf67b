"""The smart lock: says who holds it since when, and has no expiry until someone else wants it.

A holder that works for hours is never cut off by a clock. A holder that died leaves its lock behind; whoever meets it
next lets it run out, and nobody ever deletes another's lock. An expiry, once set, is only ever shortened.
"""

import asyncio
import contextlib
import math
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Unpack

import msgspec

from keystead.clock import Clock
from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Invalid, ReplyLost, Unavailable
from keystead.keys import Executor, Keyspace, LockKey, LockKind, LockRef, NoneUntilEnded, Reply, Value
from keystead.patterns.facts import PatternFacts
from keystead.patterns.lock import MARGIN, Holding, LockHeld
from keystead.telemetry import logger

ACQUIRE = Script("keystead.patterns", "scripts/lock/smart_acquire.lua")
RELEASE = Script("keystead.patterns", "scripts/lock/smart_release.lua")

SPIN_SECONDS = 0.1
STOP_POLL_SECONDS = 0.2
STOPPING_SECONDS = 60
LOOK_SECONDS = 10.0
RELEASE_ATTEMPTS = 3

_log = logger("patterns")


@dataclass(frozen=True, slots=True)
class _Rules:
    compares_places: bool
    stale_seconds: int
    ending_seconds: int
    malformed: int


class LockFlavour(Enum):
    """Who competes. JOBS: one holder at a time in each place. WEB: many requests in each place."""

    JOBS = _Rules(compares_places=True, stale_seconds=6 * 3600, ending_seconds=3600, malformed=-5)
    WEB = _Rules(compares_places=False, stale_seconds=120, ending_seconds=300, malformed=-3)


class SmartAttempt(Enum):
    """How an attempt ended; ``is_ours`` says whether we hold the lock now."""

    ACQUIRED = "acquired"
    HELD = "someone else holds it"
    STALE = "someone holds it for too long; it ends within the hour, or minutes"
    SAME_PLACE = "an earlier holder in this place died; it ends within minutes"
    ALREADY_HELD = "this very holder has it already"
    MALFORMED = "the value is no lock; it ends within minutes"

    @property
    def is_ours(self) -> bool:
        return self in (SmartAttempt.ACQUIRED, SmartAttempt.ALREADY_HELD)


_JOBS_CODES = {1: SmartAttempt.ACQUIRED, -1: SmartAttempt.HELD, -2: SmartAttempt.STALE, -3: SmartAttempt.SAME_PLACE,
               -4: SmartAttempt.ALREADY_HELD, -5: SmartAttempt.MALFORMED}
_WEB_CODES = {1: SmartAttempt.ACQUIRED, -1: SmartAttempt.HELD, -2: SmartAttempt.STALE, -3: SmartAttempt.MALFORMED}


class SmartRelease(IntEnum):
    """How giving a lock back ended; the numbers are those of the script."""

    FREED = 1
    STOLEN = -1
    MALFORMED = -2
    NOT_SET = -3


class SmartLockValue(msgspec.Struct, frozen=True):
    """What lies in the key."""

    hostname: str
    acquired_at: int
    lock_id: str


def never() -> bool:
    return False


def new_lock_id() -> str:
    return secrets.token_urlsafe(16)


class SmartLock:
    """A smart lock of one flavour. Declares one key.

    ``hostname`` in its operations names a place that never competes with itself: a role and a host, ``jobs-web3``.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, flavour: LockFlavour = LockFlavour.JOBS,
        **facts: Unpack[PatternFacts],
    ) -> None:
        self.flavour = flavour
        self.key = LockKey(
            keyspace, pattern, LockKind.SMART, ttl=NoneUntilEnded(flavour.value.ending_seconds),
            scripts=("lock/smart_acquire.lua", "lock/smart_release.lua"), **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "SmartLockAt":
        return SmartLockAt(self, self.key.at(*variables, **named))


class SmartLockAt:
    """One smart lock."""

    __slots__ = ("_lock", "reference")

    def __init__(self, lock: SmartLock, reference: LockRef) -> None:
        self._lock = lock
        self.reference = reference

    @property
    def ending_seconds(self) -> float:
        """How long another place waits at least for a lock that its holder does not give back."""
        return self._lock.flavour.value.ending_seconds

    def try_acquire(self, on: ScriptRunner, *, hostname: str, lock_id: str, now: float) -> Awaitable[SmartAttempt]:
        """Take the lock, or find out why not. One atomic step; never waits."""
        if not hostname:
            raise Invalid("a smart lock says in which place its holder is; give it a hostname")
        rules = self._lock.flavour.value
        codes = _JOBS_CODES if rules.compares_places else _WEB_CODES
        value = msgspec.json.encode(SmartLockValue(hostname, int(now), lock_id))
        return ACQUIRE(
            on, keys=[self.reference],
            args=[value, hostname if rules.compares_places else "", lock_id, now, rules.stale_seconds,
                  rules.ending_seconds, rules.malformed],
            decode=lambda code: codes[code],
        )

    def release(self, on: ScriptRunner, lock_id: str, *, expire: bool = False) -> Awaitable[SmartRelease]:
        """Free the lock if this holder has it; with ``expire`` let it end within 60 s instead. May be repeated."""
        seconds = STOPPING_SECONDS if expire else 0
        return RELEASE(on, keys=[self.reference], args=[lock_id, seconds], decode=SmartRelease)

    async def release_surely(self, on: ScriptRunner, lock_id: str, *, expire: bool = False) -> SmartRelease:
        """``release``, tried up to three times while the server is away, with growing pauses."""
        for attempt in range(1, RELEASE_ATTEMPTS):
            try:
                return await self.release(on, lock_id, expire=expire)
            except Unavailable:
                await asyncio.sleep(0.1 * attempt * 2**attempt + random.uniform(0, 0.3))
        return await self.release(on, lock_id, expire=expire)

    def remaining(self, on: Executor, lock_id: str) -> Awaitable[float | None]:
        """Seconds this holder has left, infinite where nobody contested; None when the lock is not its own."""
        key = self.reference.name(on.layout)

        def read(replies: list[Reply]) -> float | None:
            raw, left_ms = replies
            try:
                found = msgspec.json.decode(raw or b"", type=SmartLockValue)
            except msgspec.DecodeError:
                return None
            if found.lock_id != lock_id:
                return None
            return math.inf if left_ms < 0 else left_ms / 1000

        return on.run_block([("GET", key), ("PTTL", key)], read, repeat=True)

    def hold(
        self, on: ScriptRunner, clock: Clock, *, hostname: str, spin: bool = False,
        patience_seconds: float | None = None, stopping: Callable[[], bool] = never,
    ) -> "SmartHolding":
        """The lock for a block.

        Without ``spin`` a lock that is held raises ``LockHeld``. With it, tries again each 0.1 s until ``stopping``
        says so (then ``LockHeld``), or until ``patience_seconds`` are over: then the block runs *without* the lock,
        and ``has_lock`` is false. Once ``stopping`` says so inside the block, the lock is given 60 s at most, so
        that a kill that follows does not leave it behind for longer.
        """
        return SmartHolding(self, on, clock, hostname, spin, patience_seconds, stopping)


class SmartHolding(Holding):
    """A smart lock for a block. ``has_lock`` is false where patience ended first and the block runs without it.

    Looked at every ten seconds. While the server cannot be asked, the lock counts as held for nearly as long as another
    place would have to wait for it: an hour, on the web five minutes.
    """

    def __init__(
        self, lock: SmartLockAt, on: ScriptRunner, clock: Clock, hostname: str, spin: bool,
        patience_seconds: float | None, stopping: Callable[[], bool],
    ) -> None:
        super().__init__(lock.reference.logical, every_seconds=LOOK_SECONDS)
        self.lock_id = new_lock_id()
        self.has_lock = False
        self._lock = lock
        self._on = on
        self._clock = clock
        self._hostname = hostname
        self._spin = spin
        self._patience_seconds = patience_seconds
        self._stopping = stopping

    @property
    def remaining_seconds(self) -> float:
        return super().remaining_seconds if self.has_lock else 0.0

    async def _acquire(self) -> None:
        deadline = None if self._patience_seconds is None else time.monotonic() + self._patience_seconds
        while True:
            asked_at = time.monotonic()
            attempt = await self._try()
            if attempt.is_ours:
                if attempt is SmartAttempt.ALREADY_HELD:
                    _log.warning("lock already held", key=self.key)
                self.has_lock = True
                self._ends_at = self._surely_until(asked_at, math.inf)
                break
            if not self._spin or self._stopping():
                raise LockHeld(self.key, attempt.value)
            if deadline is not None and time.monotonic() >= deadline:
                self._every_seconds = math.inf
                return
            await asyncio.sleep(SPIN_SECONDS)
        if self._stopping is not never:
            self._run_beside(self._watch_for_stop())

    async def _try(self) -> SmartAttempt:
        try:
            return await self._lock.try_acquire(
                self._on, hostname=self._hostname, lock_id=self.lock_id, now=self._clock.now()
            )
        except (asyncio.CancelledError, ReplyLost):
            # It may be ours without our knowing; nobody else would free it for a long time.
            with contextlib.suppress(Unavailable):
                await self._lock.release_surely(self._on, self.lock_id)
            raise

    async def _watch_for_stop(self) -> None:
        while not self._stopping():  # noqa: ASYNC110 - the flag is set by a signal handler, which knows no event loop
            await asyncio.sleep(STOP_POLL_SECONDS)
        ending = False
        while not ending:
            try:
                await self._lock.release_surely(self._on, self.lock_id, expire=True)
                ending = True
            except Unavailable:
                await asyncio.sleep(STOP_POLL_SECONDS)

    async def _renew(self) -> float | None:
        asked_at = time.monotonic()
        left = await self._lock.remaining(self._on, self.lock_id)
        return None if left is None else self._surely_until(asked_at, left)

    def _surely_until(self, asked_at: float, left: float) -> float:
        return asked_at + min(left, self._lock.ending_seconds) * (1 - MARGIN)

    async def _release(self) -> str | None:
        if not self.has_lock:
            return None
        outcome = await self._lock.release_surely(self._on, self.lock_id)
        if outcome is SmartRelease.STOLEN:
            return "someone else has it"
        return None if outcome is SmartRelease.FREED else self._why_not_ours()
