"""The leased lock: ends by itself unless its holder renews it.

A holder that dies frees it within one lease. Waiters are served in the order they came and are woken by the server,
not by asking again and again. With ``fence`` each holder gets a number, and a write that carries an older number is
refused (``lock_fence``).
"""

import time
from collections.abc import Awaitable
from typing import Unpack

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import (
    AtMost,
    Channel,
    ChannelRef,
    Command,
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
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.gathering import is_client
from keystead.patterns.lock_fence import Fenced
from keystead.patterns.lock_lease import (
    LeaseHolder,
    LockLease,
    Place,
    has_compare_and_delete,
    holder_of,
    new_holder,
    uid_of,
)
from keystead.patterns.lock_leased_block import LeaseHolding

TAKE = Script("keystead.patterns", "scripts/lock/take.lua")
RENEW = Script("keystead.patterns", "scripts/lock/renew.lua")
ASK = Script("keystead.patterns", "scripts/lock/ask.lua")
RELEASE = Script("keystead.patterns", "scripts/lock/release.lua")

QUEUE_KEPT_SECONDS = 60
HANDOVER_SECONDS = 3.0
_PLAIN = Layout.PLAIN  # looked up once: taking a lock is hot
MOST_KNOWN = 1000  # names of locks kept ready, since the same ones are taken again and again


class LeasedLock:
    """A lock that ends after ``lease_seconds`` unless renewed.

    Declares, from the lock's name: the lock, ``{lock}:waiting`` (who waits) and the channel ``{lock}:turn:{waiter}``.
    ``fence`` names a counter of holders, with the same variables; it stays for as long as numbers must not repeat, so
    it has no expiry.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, lease_seconds: float = 30.0, fence: str = "",
        **facts: Unpack[PatternFacts],
    ) -> None:
        self.lease_seconds = lease_seconds
        scripts = tuple(f"lock/{name}.lua" for name in ("ask", "release", *(("take",) if fence else ())))
        self.key = LockKey(
            keyspace, pattern, LockKind.LEASED, ttl=AtMost(lease_seconds), scripts=("lock/renew.lua", *scripts), **facts
        )
        self.waiting: SortedSetKey[str] = SortedSetKey(
            keyspace, f"{pattern}:waiting", str, member="how the waiter's JSON begins", score="order of arrival",
            **told(facts, "who waits for", scripts=scripts, ttl=AtMost(QUEUE_KEPT_SECONDS)),
        )
        self.turn: Channel[str] = Channel(
            keyspace, f"{pattern}:turn:{{waiter}}", str,
            **told(facts, "wakes the waiter whose turn it is", scripts=scripts),
        )
        self.fence: IntegerKey | None = None
        if fence:
            self.fence = IntegerKey(
                keyspace, fence, **told(facts, "numbers the holders of", scripts=(*scripts, "lock/fenced.lua"))
            )
            if set(self.fence.template.names) != set(self.key.template.names):
                raise DeclarationError(f"{fence}: a fence counts the holders of one lock, so it needs its variables")

        self._known: dict[Value, LeasedLockAt] = {}

    def at(self, *variables: Value, **named: Value) -> "LeasedLockAt":
        if len(variables) != 1 or named or variables[0].__class__ is not str:
            return LeasedLockAt(self, self.key.at(*variables, **named))
        (variable,) = variables
        found = self._known.get(variable)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[variable] = LeasedLockAt(self, self.key.at(variable))
        return found


class LeasedLockAt:
    """One leased lock."""

    __slots__ = ("_lock", "_ms", "_plain_name", "_tagged_name", "is_numbered", "lease_seconds", "reference")

    def __init__(self, lock: LeasedLock, reference: LockRef) -> None:
        self._lock = lock
        self._ms = round(lock.lease_seconds * 1000)
        self._plain_name, self._tagged_name = reference.name(Layout.PLAIN), reference.name(Layout.TAGGED)
        self.lease_seconds = lock.lease_seconds
        self.is_numbered = lock.fence is not None
        self.reference = reference

    @property
    def fence(self) -> IntegerRef | None:
        return None if self._lock.fence is None else self._lock.fence.at(**self.reference.arguments)

    def try_acquire(self, on: ScriptRunner, *, now: float, me: bytes = b"") -> Awaitable[LockLease | None]:
        """Take the lock, or None when it is held. One atomic step; never waits; may be repeated after a lost reply.

        ``me``, from ``new_holder``, is for a caller that wants to free the lock even if it never sees the answer.
        """
        me, ends_at = me or new_holder(), time.monotonic() + self._lock.lease_seconds
        if self._lock.fence is not None:
            taken_at = b"%.3f" % now

            def read_number(number: int) -> LockLease | None:
                value = b'%b,"acquired_at":%b,"fence":%d}' % (me, taken_at, number)  # as the script wrote it
                return LockLease(me, value, number, ends_at) if number else None

            counter = self._lock.fence.at(**self.reference.arguments)
            return TAKE(on, keys=[self.reference, counter], args=[me, taken_at, self._ms], decode=read_number)
        value, command = self.taking(on.layout, me, now)

        def read(found: Reply) -> LockLease | None:
            # What a lost first try left behind is ours as well.
            return LockLease(me, value, 0, ends_at) if found is None or found.startswith(me) else None

        return on.run(command, read, repeat=True)

    def taking(self, layout: Layout, me: bytes, now: float) -> tuple[bytes, Command]:
        """What the lock will hold, and the command that takes it where holders are not numbered."""
        value = b'%b,"acquired_at":%.3f}' % (me, now)
        name = self._name(layout)
        return value, ("SET", name, value, "NX", "GET", "PX", self._ms)

    def freeing(self, layout: Layout, value: bytes) -> Command:
        """The command that frees the lock where nobody waits for it, on servers that have it."""
        return ("DELIFEQ", self._name(layout), value)

    def renew(self, on: ScriptRunner, lease: LockLease) -> Awaitable[LockLease | None]:
        """Give the lock its whole time again; None when it is not this holder's any more. May be repeated."""
        ends_at = time.monotonic() + self._lock.lease_seconds
        return RENEW(
            on, keys=[self.reference], args=[lease.me, self._ms],
            decode=lambda done: LockLease(lease.me, lease.value, lease.fence, ends_at) if done else None,
        )

    def release(self, on: ScriptRunner, lease: LockLease, *, now: float) -> Awaitable[bool]:
        """Free the lock, to the next in turn if someone waits; says whether it was still this holder's.

        May be repeated: after a lost reply, false may also mean that the first try freed it.
        """
        if lease.value is not None and is_client(on) and has_compare_and_delete(on):
            return self._release_quickly(on, lease, now)
        return self.leave(on, lease.me, now=now)

    async def _release_quickly(self, on: Valkey, lease: LockLease, now: float) -> bool:
        """Where nobody waits the value is as it was written, and no script is needed."""
        assert lease.value is not None
        if await on.call(self.freeing(on.layout, lease.value), repeat=True):
            return True
        return await self.leave(on, lease.me, now=now)

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
        """Leave the queue, and free the lock if it is ours, to the next in turn if someone waits. May be repeated."""
        verb, turn = self._wake(on.layout)
        return RELEASE(on, keys=self._keys(), args=[me, b"%.3f" % now, self._handover_ms, verb, turn], decode=bool)

    def holder(self, on: Executor) -> Awaitable[LeaseHolder | None]:
        """Who holds the lock now."""
        return on.run(("GET", self.reference.name(on.layout)), holder_of, repeat=True)

    def fenced(self, on: ScriptRunner, lease: LockLease) -> Fenced:
        """An executor whose writes are refused once another holder was numbered."""
        if self._lock.fence is None:
            raise DeclarationError(f"{self._lock.key.pattern}: declare fence= to number its holders")
        return Fenced(on, self._lock.fence.at(**self.reference.arguments), lease.fence)

    def hold(self, valkey: Valkey, clock: Clock, *, patience_seconds: float | None = 0.0) -> LeaseHolding:
        """The lock for a block, renewed all the while.

        Waits its turn for up to ``patience_seconds`` (None: for ever; 0: not at all), then raises ``LockHeld``.
        """
        return LeaseHolding(self, valkey, clock, patience_seconds)

    def _name(self, layout: Layout) -> bytes:
        if layout is _PLAIN:
            return self._plain_name
        return self._tagged_name if layout.lane == 0 else self.reference.name(layout)

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
        return self._lock.turn.at(**self.reference.arguments, waiter=uid_of(me))
