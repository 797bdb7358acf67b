"""Leader: one of many instances leads, and each change of leader gets a higher epoch.

A leader renews its lease; one that cannot stops believing in itself before the server can elect another. Followers
take over when the lease ends, or at once when the leader resigns. ``docs/patterns/leader.md`` says what that is worth.
"""

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar, Unpack

from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, Invalid, Unavailable
from keystead.keys import (
    AtMost,
    Channel,
    ChannelRef,
    Executor,
    IntegerKey,
    IntegerRef,
    Keyspace,
    Layout,
    StringKey,
    StringRef,
    Value,
)
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.lock import RETRY_SECONDS
from keystead.patterns.lock_fence import Fenced
from keystead.telemetry import counts, logger

ELECT = Script("keystead.patterns", "scripts/leader/elect.lua")
RENEW = Script("keystead.patterns", "scripts/leader/renew.lua")
RESIGN = Script("keystead.patterns", "scripts/leader/resign.lua")

T = TypeVar("T")

counts.describe("leader_terms_begun", "times this process began to lead, by leadership")
counts.describe("leader_terms_lost", "times this process stopped leading without having resigned, by leadership")

_log = logger("patterns")


@dataclass(frozen=True, slots=True)
class Term:
    """Proof of having been elected."""

    instance: str
    epoch: int
    ends_at: float  # on the monotonic clock, counted from before the election or renewal was asked for

    @property
    def value(self) -> str:
        """What lies in the key; a script that acts for the leader compares it."""
        return f"{self.instance}:{self.epoch}"


@dataclass(frozen=True, slots=True)
class Following:
    """Another leads, and has this long at most unless it renews."""

    left_seconds: float


class Leader:
    """A leadership that is held for ``lease_seconds`` at a time.

    Declares the leader's key (``<instance>:<epoch>``), the counter ``epoch`` and the channel ``{leader}:vacant``. A
    leader renews each ``renew_seconds`` and stops believing in itself ``margin_seconds`` before its lease can end.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, epoch: str, lease_seconds: float = 15.0,
        renew_seconds: float = 5.0, margin_seconds: float = 3.0, **facts: Unpack[PatternFacts],
    ) -> None:
        if not 0 < renew_seconds < lease_seconds - margin_seconds < lease_seconds:
            raise DeclarationError(
                f"{pattern}: a leader must renew before it steps down, and step down before its lease ends; got "
                f"renewal after {renew_seconds:g} s, margin {margin_seconds:g} s, lease {lease_seconds:g} s"
            )
        self.lease_seconds, self.renew_seconds, self.margin_seconds = lease_seconds, renew_seconds, margin_seconds
        self.key: StringKey[str] = StringKey(
            keyspace, pattern, str, ttl=AtMost(lease_seconds),
            scripts=("leader/elect.lua", "leader/renew.lua", "leader/resign.lua"), **facts,
        )
        self.epoch = IntegerKey(
            keyspace, epoch, **told(facts, "counts the leaders of", scripts=("leader/elect.lua", "lock/fenced.lua"))
        )
        self.vacant: Channel[str] = Channel(
            keyspace, f"{pattern}:vacant", str,
            **told(facts, "told when the leader resigns", scripts=("leader/resign.lua",)),
        )
        if set(self.epoch.template.names) != set(self.key.template.names):
            raise DeclarationError(f"{epoch}: an epoch counts the leaders of one leadership, so it needs its variables")

    def at(self, *variables: Value, **named: Value) -> "LeaderAt":
        return LeaderAt(self, self.key.at(*variables, **named))


class LeaderAt:
    """One leadership."""

    __slots__ = ("_ms", "leader", "reference")

    def __init__(self, leader: Leader, reference: StringRef[str]) -> None:
        self.leader = leader
        self.reference = reference
        self._ms = round(leader.lease_seconds * 1000)

    @property
    def epoch(self) -> IntegerRef:
        return self.leader.epoch.at(**self.reference.arguments)

    @property
    def vacant(self) -> ChannelRef[str]:
        return self.leader.vacant.at(**self.reference.arguments)

    def elect(self, on: ScriptRunner, instance: str) -> Awaitable[Term | Following]:
        """Become the leader if there is none. One atomic step; may be repeated: who leads already keeps its epoch."""
        ends_at = time.monotonic() + self.leader.lease_seconds

        def read(reply: list[int]) -> Term | Following:
            if reply[0]:
                return Term(instance, reply[1], ends_at)
            # A key without an end is an operator's doing; look again after a lease.
            return Following(reply[1] / 1000 if reply[1] >= 0 else self.leader.lease_seconds)

        return ELECT(on, keys=[self.reference, self.epoch], args=[instance, self._ms], decode=read)

    def renew(self, on: ScriptRunner, term: Term) -> Awaitable[Term | None]:
        """Lead for a whole lease more; None when another has been elected or the lease ended. May be repeated."""
        ends_at = time.monotonic() + self.leader.lease_seconds
        return RENEW(
            on, keys=[self.reference], args=[term.value, self._ms],
            decode=lambda done: Term(term.instance, term.epoch, ends_at) if done else None,
        )

    def resign(self, on: ScriptRunner, term: Term) -> Awaitable[bool]:
        """Stop leading; a follower is elected at once. Says whether this was still the leader. May be repeated."""
        verb = "PUBLISH" if on.layout is Layout.PLAIN else "SPUBLISH"
        return RESIGN(
            on, keys=[self.reference], args=[term.value, verb, self.vacant.name(on.layout)], decode=bool
        )

    def current(self, on: Executor) -> Awaitable[str | None]:
        """Who leads: ``<instance>:<epoch>``, or None."""
        return self.reference.get(on)

    def fenced(self, on: ScriptRunner, term: Term) -> Fenced:
        """An executor whose writes are refused once another leader was elected."""
        return Fenced(on, self.epoch, term.epoch)

    def campaign(self, valkey: Valkey, *, instance: str = "") -> "Leadership":
        """Take part in the election for the length of an ``async with`` block."""
        return Leadership(self, valkey, instance or new_instance())


class Leadership:
    """One instance's part: follows, is elected, renews, steps down in time, resigns when the block ends."""

    def __init__(self, leader: LeaderAt, valkey: Valkey, instance: str) -> None:
        if not instance or any(character.isspace() for character in instance):
            raise Invalid(f"an instance needs a name without spaces, got {instance!r}")
        self.instance = instance
        self._leader = leader
        self._valkey = valkey
        self._name = leader.reference.logical
        self._term: Term | None = None  # what the server last confirmed, whether we still believe in it or not
        self._began = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()
        self._vacancy = asyncio.Event()
        self._standing = False
        self._rests_until = 0.0
        self._failure: BaseException | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_leader(self) -> bool:
        """Whether this instance surely leads now: asked of the monotonic clock, not of a timer that may run late."""
        return self._term is not None and time.monotonic() < self._stops_at(self._term)

    @property
    def term(self) -> Term | None:
        """The present term, or None while following."""
        return self._term if self.is_leader else None

    def fenced(self, on: ScriptRunner) -> Fenced:
        """An executor whose writes are refused once another leader was elected; for a leader's own writes."""
        if self._term is None:
            raise Invalid(f"{self._name}: this instance has not been elected, so it has no epoch to write with")
        return self._leader.fenced(on, self._term)

    async def wait_until_leader(self) -> Term:
        """The term, as soon as there is one. Raises what ended this instance's part, should the server refuse it."""
        while (term := self.term) is None:
            if self._failure is not None:
                raise self._failure
            self._began.clear()
            await self._began.wait()
        return term

    async def lead(self, work: Callable[[Term], Awaitable[T]]) -> T:
        """Run ``work`` while leading, and return what it returns.

        Waits to be elected. When the leadership is lost the work is cancelled and, once elected again, begun anew.
        """
        while True:
            term = await self.wait_until_leader()
            working: asyncio.Future[T] = asyncio.ensure_future(work(term))
            losing = asyncio.ensure_future(self._ended.wait())
            try:
                await asyncio.wait((working, losing), return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    return working.result()
            finally:
                working.cancel()
                losing.cancel()
                await asyncio.gather(working, losing, return_exceptions=True)

    async def resign(self) -> bool:
        """Stop leading now, so that another is elected at once. This instance stands again after ``renew_seconds``."""
        term, self._term = self._term, None
        self._rests_until = time.monotonic() + self._leader.leader.renew_seconds
        self._stop_believing()
        return term is not None and await self._leader.resign(self._valkey, term)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._campaign()), loop.create_task(self._listen())]
        for task in self._tasks:
            task.add_done_callback(self._part_ended)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Where the server does not answer the lease ends by itself, and leaving is not held up for long.
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(self._leader.leader.margin_seconds):
                try:
                    if self._standing:  # elected perhaps, without having heard of it; asking again tells
                        answer = await self._leader.elect(self._valkey, self.instance)
                        self._term = answer if isinstance(answer, Term) else None
                finally:
                    await self.resign()

    # -- behind the scenes ------------------------------------------------------------------------------------------

    def _stops_at(self, term: Term) -> float:
        return term.ends_at - self._leader.leader.margin_seconds

    async def _campaign(self) -> None:
        while True:
            self._vacancy.clear()  # before asking: a message that comes meanwhile may be newer than the answer
            try:
                pause = await (self._stand() if self._term is None else self._renew(self._term))
            except Unavailable:
                pause = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._vacancy.wait()

    async def _stand(self) -> float:
        """Stand for election; says when there is something to do again."""
        rest = self._rests_until - time.monotonic()
        if rest > 0:
            return rest
        self._standing = True
        answer = await self._leader.elect(self._valkey, self.instance)
        self._standing = False
        if isinstance(answer, Following):
            return answer.left_seconds + 0.005
        if time.monotonic() < self._rests_until:  # resigned while the answer was on its way
            await self._leader.resign(self._valkey, answer)
            return 0.0
        return self._begin(answer)

    async def _renew(self, term: Term) -> float:
        renewed = await self._leader.renew(self._valkey, term)
        if self._term is not term:
            return 0.0  # resigned meanwhile
        if renewed is None:
            self._term = None
            self._lose("another was elected, or the lease ended")
            return 0.0
        return self._begin(renewed)

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                async with self._valkey.hub().subscribe(self._leader.vacant) as listener:
                    self._vacancy.set()  # a message may have been missed while nobody listened
                    async for _ in listener:
                        self._vacancy.set()
            await asyncio.sleep(RETRY_SECONDS)

    def _part_ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._failure, self._term, self._standing = error, None, False
        _log.error("no part in the election", leadership=self._name, instance=self.instance, reason=str(error))
        self._lose("its part in the election failed")
        self._began.set()

    def _begin(self, term: Term) -> float:
        """Lead, from now or still; says when to renew."""
        self._term = term
        if not self.is_leader:
            return 0.0  # the answer came too late to be believed; the next one will tell
        if self._ended.is_set():
            counts.add("leader_terms_begun", leadership=self._name)
            _log.info("leading", leadership=self._name, instance=self.instance, epoch=term.epoch)
        self._ended.clear()
        self._began.set()
        self._watch(term)
        return self._leader.leader.renew_seconds

    def _watch(self, term: Term) -> None:
        if self._timer is not None:
            self._timer.cancel()
        left = max(0.0, self._stops_at(term) - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(left, self._check)

    def _check(self) -> None:
        if self._term is not None and self.is_leader:
            self._watch(self._term)
        else:
            self._lose("the lease was not renewed in time")

    def _lose(self, reason: str) -> None:
        if not self._ended.is_set():
            counts.add("leader_terms_lost", leadership=self._name)
            _log.warning("not leading any more", leadership=self._name, instance=self.instance, reason=reason)
        self._stop_believing()

    def _stop_believing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ended.set()


def new_instance() -> str:
    """A name for this process, unlike that of any other or earlier one."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_urlsafe(6)}"
