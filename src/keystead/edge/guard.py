"""The guard at the door: who is blocked, who asks too often, and what follows from it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from keystead.edge.addresses import LOOPBACK, ClientAddress, Networks
from keystead.edge.keys import BLOCKED_IP, VIOLATIONS, VIOLATIONS_SECONDS
from keystead.edge.limits import Decision, IpLimit
from keystead.edge.refusals import Blocked
from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import LimitReached, Unavailable
from keystead.patterns import WhenAway
from keystead.telemetry import counts, logger

T = TypeVar("T")

VIOLATE = Script("keystead.edge", "scripts/violate.lua")

MOST_BLOCK_SECONDS = 7 * 24 * 3600
TARPIT_FROM = 5
TARPIT_SECONDS = 1.0
TARPIT_AT_ONCE = 5
CLEAN_SECONDS = 1.0
STORE_WAIT_SECONDS = 1.0
MOST_REMEMBERED = 10_000

counts.describe("edge_blocked_requests", "requests refused because their address is blocked")
counts.describe("edge_violations", "weights added to addresses, by reason")
counts.describe("edge_store_away", "times the guard decided without its store")

_log = logger("edge")


class Weight(IntEnum):
    """How much a misdeed other than a full limit weighs."""

    BAD_SIGNATURE = 3
    PATH_PROBING = 5
    TOKEN_REUSE = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a violation led to: the sum so far, and for how long the address is blocked from now (0: not)."""

    violations: int
    blocked_seconds: float


class Guard:
    """Blocks, limits and violations by address.

    Addresses in ``uncounted`` pass everything. While the server is away or full, the block check lets through, and each
    limit does as it declares; at most ``STORE_WAIT_SECONDS`` are spent on finding that out, and not again for as long.
    """

    def __init__(self, valkey: Valkey, *, uncounted: Networks = LOOPBACK) -> None:
        self._valkey = valkey
        self._uncounted = uncounted
        self._seen: dict[str, tuple[float, int]] = {}  # bucket → (monotonic time until, violations); never a block
        self._waiting: dict[str, int] = {}
        self._away_until = 0.0

    def spares(self, address: ClientAddress) -> bool:
        """Whether an address passes everything uncounted; the answer stays the same."""
        return address.within(self._uncounted)

    @asynccontextmanager
    async def passage(self, address: ClientAddress) -> AsyncIterator[None]:
        """Let one request through the door, at the speed its address deserves.

        Refuses a blocked address with ``Blocked``. An address with violations waits a second, a few requests at a
        time; what comes on top is refused with ``LimitReached``.
        """
        violations = 0 if address.within(self._uncounted) else await self._standing(address.bucket)
        if violations < TARPIT_FROM:
            yield
            return
        waiting = self._waiting.get(address.bucket, 0)
        if waiting >= TARPIT_AT_ONCE:
            raise LimitReached("too many requests at once from this address", retry_after_seconds=TARPIT_SECONDS)
        self._waiting[address.bucket] = waiting + 1
        try:
            await asyncio.sleep(TARPIT_SECONDS)
            yield
        finally:
            self._waiting[address.bucket] -= 1
            if not self._waiting[address.bucket]:
                del self._waiting[address.bucket]

    async def count(self, limit: IpLimit, address: ClientAddress) -> Decision:
        """Count one use. A use above the limit is not allowed and counts as a violation of that limit.

        Raises ``Unavailable`` for a limit that is closed while the server is away.
        """
        if address.within(self._uncounted):
            return limit.untouched
        try:
            told = await self._ask(lambda: limit.window.at(address.bucket).use(self._valkey))
        except Unavailable:
            counts.add("edge_store_away", limit=limit.name)
            if limit.when_away is WhenAway.CLOSED:
                raise
            return limit.untouched
        if told.degraded:
            counts.add("edge_store_away", limit=limit.name)
            self._away_until = time.monotonic() + STORE_WAIT_SECONDS
            return limit.untouched
        decision = Decision(told.allowed, limit.most, told.remaining, told.reset_after_seconds)
        if not decision.allowed and limit.weight:
            await self.violate(address, limit.weight, limit.name)
        return decision

    async def give_back(self, limit: IpLimit, address: ClientAddress) -> bool:
        """Take one use back, after a success that shall not count; says whether there was one."""
        if address.within(self._uncounted):
            return False
        return bool(await limit.window.at(address.bucket).give_back(self._valkey))

    async def violate(self, address: ClientAddress, weight: int, reason: str) -> Verdict:
        """Add ``weight`` to the address, and block it if the sum asks for that. ``reason`` is a word, not a sentence.

        One atomic step. A block grows and never shrinks. While the server is away, nothing is remembered.
        """
        if address.within(self._uncounted):
            return Verdict(0, 0)
        try:
            violations, left_ms = await self._ask(lambda: VIOLATE(
                self._valkey,
                keys=[VIOLATIONS.at(address.bucket), BLOCKED_IP.at(address.bucket)],
                args=[int(weight), VIOLATIONS_SECONDS * 1000, MOST_BLOCK_SECONDS * 1000, f"blocked:{reason}"],
                decode=_pair,
            ))
        except Unavailable:
            counts.add("edge_store_away", limit="violations")
            return Verdict(0, 0)
        self._seen.pop(address.bucket, None)
        verdict = Verdict(violations, MOST_BLOCK_SECONDS if left_ms == -1 else left_ms / 1000)
        counts.add("edge_violations", weight, reason=reason)
        # The address itself is personal data: the block list shows it, the log does not.
        _log.warning("violation", reason=reason, weight=weight, violations=violations,
                     blocked_seconds=round(verdict.blocked_seconds))
        return verdict

    async def _standing(self, bucket: str) -> int:
        """The violations of an address that is not blocked; refuses one that is."""
        now = time.monotonic()
        until, violations = self._seen.get(bucket, (0.0, 0))
        if now < until:
            return violations
        try:
            mark, held = await self._ask(lambda: self._marks(bucket))
            if mark is not None:
                left = await self._ask(lambda: BLOCKED_IP.at(bucket).remaining_seconds(self._valkey))
                counts.add("edge_blocked_requests")
                raise Blocked("requests from this address are blocked for a while",
                              retry_after_seconds=MOST_BLOCK_SECONDS if left is None else left)
        except Unavailable:
            counts.add("edge_store_away", limit="blocked_ip")
            return 0
        if len(self._seen) >= MOST_REMEMBERED:
            self._seen.clear()
        self._seen[bucket] = now + CLEAN_SECONDS, held or 0
        return held or 0

    async def _marks(self, bucket: str) -> tuple[str | None, int | None]:
        async with self._valkey.pipeline(transaction=False) as pipeline:
            mark, held = BLOCKED_IP.at(bucket).get(pipeline), VIOLATIONS.at(bucket).get(pipeline)
            await pipeline.execute()
        return await mark, await held

    async def _ask(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Wait for the store, but not for long, and not again right after it did not answer."""
        if time.monotonic() < self._away_until:
            raise Unavailable("the server that keeps limits and blocks is away")
        try:
            async with asyncio.timeout(STORE_WAIT_SECONDS):
                return await ask()
        except ErrorReply as error:
            # A full server still answers reads, so it is asked again the next time.
            raise Unavailable("the server that keeps limits and blocks refuses to write") from error
        except (TimeoutError, Unavailable) as error:
            self._away_until = time.monotonic() + STORE_WAIT_SECONDS
            raise Unavailable("the server that keeps limits and blocks is away") from error


def _pair(reply: list[int]) -> tuple[int, int]:
    return reply[0], reply[1]
