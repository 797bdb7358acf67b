"""The leased lock: ends by itself unless its holder renews it.

A holder that dies frees it within one lease. Waiters are served in the order they came and are woken by the server,
not by asking again and again. With ``fence`` each holder gets a number, and a write that carries an older number is
refused (``lock_fence``).
"""

import asyncio
import contextlib
import math
import os
import secrets
import socket
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Unpack

import msgspec

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, ReplyLost, Unavailable
from keystead.keys import (
    AtMost,
    Channel,
    ChannelRef,
    Executor,
    IntegerKey,
    IntegerRef,
    Keyspace,
    Layout,
    LockKey,
    LockKind,
    LockRef,
    Reference,
    Reply,
    SortedSetKey,
    Value,
)
from keystead.patterns.derived import around
from keystead.patterns.gathering import is_client
from keystead.patterns.lock import MARGIN, Holding, LockHeld, RoomFacts, Runner, saying
from keystead.patterns.lock_fence import Fenced

TAKE = Script("keystead.patterns", "scripts/lock/take.lua")
RENEW = Script("keystead.patterns", "scripts/lock/renew.lua")
ASK = Script("keystead.patterns", "scripts/lock/ask.lua")
RELEASE = Script("keystead.patterns", "scripts/lock/release.lua")

QUEUE_KEPT_SECONDS = 60
HANDOVER_SECONDS = 3.0
RENEWALS = 3  # in one lease
ASK_SECONDS = 1.0
ASK_AT_LEAST_EVERY_SECONDS = 10.0


class LeaseHolder(msgspec.Struct, frozen=True):
    """What lies in the key: who holds the lock. ``contested`` once someone waits for it."""

    host: str
    pid: str
    uid: str
    acquired_at: float
    typ: str = "lock"
    fence: int | None = None
    contested: bool = False


@dataclass(frozen=True, slots=True)
class LockLease:
    """Proof of having taken a leased lock."""

    me: bytes  # how the holder's JSON begins
    value: bytes | None  # the whole of it, where it is known
    fence: int  # 0 where holders are not numbered
    ends_at: float  # on the monotonic clock, counted from before the lock was asked for


@dataclass(frozen=True, slots=True)
class Place:
    """Not yet: how long the present holder has at most, and how many wait before us."""

    left_seconds: float
    ahead: int


class LeasedLock:
    """A lock that ends after ``lease_seconds`` unless renewed.

    Declares, from the lock's name: the lock, ``{lock}:waiting`` (who waits) and the channel ``{lock}:turn:{waiter}``.
    ``fence`` names a counter of holders, with the same variables; it stays for as long as numbers must not repeat, so
    it has no expiry.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, lease_seconds: float = 30.0, fence: str = "",
        **facts: Unpack[RoomFacts],
    ) -> None:
        self.lease_seconds = lease_seconds
        scripts = tuple(f"lock/{name}.lua" for name in ("ask", "release", *(("take",) if fence else ())))
        self.key = LockKey(
            keyspace, pattern, LockKind.LEASED, ttl=AtMost(lease_seconds), scripts=("lock/renew.lua", *scripts), **facts
        )
        self.waiting: SortedSetKey[str] = SortedSetKey(
            keyspace, f"{pattern}:waiting", str, member="how the waiter's JSON begins", score="order of arrival",
            ttl=AtMost(QUEUE_KEPT_SECONDS), scripts=scripts, **saying(facts, "who waits for"),
        )
        self.turn: Channel[str] = Channel(
            keyspace, f"{pattern}:turn:{{waiter}}", str, scripts=scripts,
            **saying(facts, "wakes the waiter whose turn it is"),
        )
        self.fence: IntegerKey | None = None
        if fence:
            self.fence = IntegerKey(
                keyspace, fence, scripts=(*scripts, "lock/fenced.lua"), **saying(facts, "numbers the holders of")
            )
            if set(self.fence.template.names) != set(self.key.template.names):
                raise DeclarationError(f"{fence}: a fence counts the holders of one lock, so it needs its variables")

    def at(self, *variables: Value, **named: Value) -> "LeasedLockAt":
        return LeasedLockAt(self, self.key.at(*variables, **named))


class LeasedLockAt:
    """One leased lock."""

    __slots__ = ("_lock", "_ms", "reference")

    def __init__(self, lock: LeasedLock, reference: LockRef) -> None:
        self._lock = lock
        self._ms = round(lock.lease_seconds * 1000)
        self.reference = reference

    @property
    def lease_seconds(self) -> float:
        return self._lock.lease_seconds

    @property
    def fence(self) -> IntegerRef | None:
        return None if self._lock.fence is None else self._lock.fence.at(**self.reference.arguments)

    def try_acquire(self, on: Runner, *, now: float, me: bytes = b"") -> Awaitable[LockLease | None]:
        """Take the lock, or None when it is held. One atomic step; never waits; may be repeated after a lost reply.

        ``me``, from ``new_holder``, is for a caller that wants to free the lock even if it never sees the answer.
        """
        me, ends_at = me or new_holder(), time.monotonic() + self._lock.lease_seconds
        if self._lock.fence is not None:
            return TAKE(
                on, keys=[self.reference, self._lock.fence.at(**self.reference.arguments)],
                args=[me, b"%.3f" % now, self._ms],
                decode=lambda number: LockLease(me, None, number, ends_at) if number else None,
            )
        value = b'%b,"acquired_at":%.3f}' % (me, now)

        def read(found: Reply) -> LockLease | None:
            # What a lost first try left behind is ours as well.
            return LockLease(me, value, 0, ends_at) if found is None or found.startswith(me) else None

        command = ("SET", self.reference.name(on.layout), value, "NX", "GET", "PX", self._ms)
        return on.run(command, read, repeat=True)

    def renew(self, on: ScriptRunner, lease: LockLease) -> Awaitable[LockLease | None]:
        """Give the lock its whole time again; None when it is not this holder's any more. May be repeated."""
        ends_at = time.monotonic() + self._lock.lease_seconds
        return RENEW(
            on, keys=[self.reference], args=[lease.me, self._ms],
            decode=lambda done: LockLease(lease.me, lease.value, lease.fence, ends_at) if done else None,
        )

    def release(self, on: Runner, lease: LockLease, *, now: float) -> Awaitable[bool]:
        """Free the lock, to the next in turn if someone waits; says whether it was still this holder's.

        May be repeated: after a lost reply, false may also mean that the first try freed it.
        """
        if lease.value is not None and is_client(on) and _has_compare_and_delete(on):
            return self._release_quickly(on, lease, now)
        return self._release(on, lease.me, now)

    async def _release_quickly(self, on: Valkey, lease: LockLease, now: float) -> bool:
        """Where nobody waits the value is as it was written, and no script is needed."""
        key = self.reference.name(on.layout)
        if await on.call(("DELIFEQ", key, lease.value), repeat=True):
            return True
        return await self._release(on, lease.me, now)

    def _release(self, on: ScriptRunner, me: bytes, now: float) -> Awaitable[bool]:
        verb, turn = self._wake(on.layout)
        return RELEASE(
            on, keys=self._keys(),
            args=[me, b"%.3f" % now, self._handover_ms, verb, turn], decode=bool,
        )

    def ask(self, on: ScriptRunner, me: bytes, *, now: float) -> Awaitable[LockLease | Place]:
        """Take the lock if it is free and our turn, else stand in the queue; ``hold`` does this and what follows."""
        verb, turn = self._wake(on.layout)
        ends_at = time.monotonic() + self._lock.lease_seconds

        def read(reply: list[int]) -> LockLease | Place:
            if reply[0]:
                return LockLease(me, None, reply[1], ends_at)
            return Place(max(0, reply[1]) / 1000, reply[2])

        return ASK(
            on, keys=self._keys(),
            args=[me, b"%.3f" % now, self._ms, self._handover_ms, verb, turn, QUEUE_KEPT_SECONDS * 1000], decode=read,
        )

    def leave(self, on: ScriptRunner, me: bytes, *, now: float) -> Awaitable[bool]:
        """Leave the queue; a lock that was handed over to us meanwhile goes to the next. May be repeated."""
        return self._release(on, me, now)

    def holder(self, on: Executor) -> Awaitable[LeaseHolder | None]:
        """Who holds the lock now."""
        return on.run(("GET", self.reference.name(on.layout)), _holder, repeat=True)

    def fenced(self, on: ScriptRunner, lease: LockLease) -> Fenced:
        """An executor whose writes are refused once another holder was numbered."""
        if self._lock.fence is None:
            raise DeclarationError(f"{self._lock.key.pattern}: declare fence= to number its holders")
        return Fenced(on, self._lock.fence.at(**self.reference.arguments), lease.fence)

    def hold(self, valkey: Valkey, clock: Clock, *, patience_seconds: float | None = 0.0) -> "LeaseHolding":
        """The lock for a block, renewed all the while.

        Waits its turn for up to ``patience_seconds`` (None: for ever; 0: not at all), then raises ``LockHeld``.
        """
        return LeaseHolding(self, valkey, clock, patience_seconds)

    @property
    def _handover_ms(self) -> int:
        return min(self._ms, round(HANDOVER_SECONDS * 1000))

    def _keys(self) -> list[Reference]:
        found: list[Reference] = [self.reference, self._lock.waiting.at(**self.reference.arguments)]
        return found if self._lock.fence is None else [*found, self._lock.fence.at(**self.reference.arguments)]

    def _wake(self, layout: Layout) -> tuple[str, str]:
        head, _ = around(self._lock.turn, "waiter", self.reference.arguments, layout)
        return ("PUBLISH" if layout is Layout.PLAIN else "SPUBLISH"), head

    def turn_of(self, me: bytes) -> ChannelRef[str]:
        """The channel that wakes this waiter."""
        return self._lock.turn.at(**self.reference.arguments, waiter=_uid(me))


class LeaseHolding(Holding):
    """A leased lock for a block. ``fence`` is the number of this holder, 0 where holders are not numbered."""

    def __init__(
        self, lock: LeasedLockAt, valkey: Valkey, clock: Clock, patience_seconds: float | None
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

    async def _acquire(self) -> None:
        me = new_holder()
        try:
            lease = await self._lock.try_acquire(self._valkey, now=self._clock.now(), me=me)
        except (asyncio.CancelledError, ReplyLost):
            await self._leave(me)  # it may be ours without our knowing
            raise
        if lease is None and self._patience_seconds != 0:
            lease = await self._wait_for_turn(me, self._patience_seconds)
        if lease is None:
            raise LockHeld(self.key)
        self._note(lease)

    async def _leave(self, me: bytes) -> None:
        with contextlib.suppress(Unavailable):
            await self._lock.leave(self._valkey, me, now=self._clock.now())

    async def _wait_for_turn(self, me: bytes, patience_seconds: float | None) -> LockLease | None:
        """Stand in the queue until the lock is handed over to us, or patience ends."""
        lease = None
        deadline = math.inf if patience_seconds is None else time.monotonic() + patience_seconds
        async with self._valkey.hub().subscribe(self._lock.turn_of(me)) as listener:
            try:
                while True:
                    answer = await self._lock.ask(self._valkey, me, now=self._clock.now())
                    if isinstance(answer, LockLease):
                        lease = answer
                        return lease
                    # A message that got lost, or a holder that died, is noticed by asking again; those far behind
                    # need not be quick.
                    pause = min(ASK_SECONDS + answer.ahead / 10, ASK_AT_LEAST_EVERY_SECONDS)
                    if answer.ahead == 0:
                        pause = min(pause, answer.left_seconds + 0.005)
                    pause = min(pause, deadline - time.monotonic())
                    if pause <= 0:
                        return None
                    await listener.get(pause)
            finally:
                if lease is None:
                    await self._leave(me)

    def _note(self, lease: LockLease) -> float:
        self._lease = lease
        self._ends_at = lease.ends_at - MARGIN * self._lock.lease_seconds
        return self._ends_at

    async def _renew(self) -> float | None:
        lease = await self._lock.renew(self._valkey, self.lease)
        return None if lease is None else self._note(lease)

    async def _release(self) -> None:
        await self._lock.release(self._valkey, self.lease, now=self._clock.now())


_process: tuple[int, bytes] = (0, b"")


def new_holder() -> bytes:
    """How the JSON of a new holder in this process begins; like no other, since it ends with a fresh uid."""
    global _process
    pid, head = _process
    if pid != os.getpid():
        pid = os.getpid()
        host = msgspec.json.encode(socket.gethostname())
        head = b'{"typ":"lock","host":%b,"pid":"%d","uid":"' % (host, pid)
        _process = (pid, head)
    return b'%b%b"' % (head, secrets.token_urlsafe(12).encode())


def _uid(me: bytes) -> str:
    return me[:-1].rpartition(b'"')[2].decode()


def _holder(raw: bytes | None) -> LeaseHolder | None:
    return None if raw is None else msgspec.json.decode(raw, type=LeaseHolder)


def _has_compare_and_delete(valkey: Valkey) -> bool:
    """Whether the server knows DELIFEQ. The nodes of a cluster may be of several versions, so there it is not used."""
    facts = valkey.facts
    if facts.get("server") != "valkey" or facts.get("mode") == "cluster":
        return False
    return int(facts["version"].partition(".")[0]) >= 9
