"""Revocation: tokens that may be used once, and tokens that may not be used any more.

A mark lives exactly as long as its token could still be presented, so the marks never pile up.
"""

import asyncio
import math
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, Unpack

import msgspec

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, Invalid
from keystead.keys import Executor, FlagKey, FlagRef, Keyspace, RecordRef, Reply, Undecodable, Until, Value
from keystead.patterns.facts import PatternFacts
from keystead.patterns.gathering import is_client

USE_ONCE = Script("keystead.patterns", "scripts/revocation/use_once.lua")
USE_AND_TAKE = Script("keystead.patterns", "scripts/revocation/use_and_take.lua")
REVOKE = Script("keystead.patterns", "scripts/revocation/revoke.lua")

GRACE_SECONDS = 61.0
LONGEST_ID = 64
MOST_AT_ONCE = 500

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")
Identifier = Value | tuple[Value, ...]


class TokenUse(Enum):
    """How a single use ended. Only ``FIRST`` allows what the token is for."""

    FIRST = "this was its first use"
    USED = "it was used or revoked before"
    TOO_LATE = "it has expired, so nobody could remember its use"


_USES = {1: TokenUse.FIRST, 0: TokenUse.USED, -1: TokenUse.TOO_LATE}


@dataclass(frozen=True, slots=True)
class TokenTaken(Generic[R]):
    """A use, and what was kept for it; None if nothing was, or the use was refused."""

    use: TokenUse
    kept: R | None


class Revocation:
    """Marks of tokens, by their id: the last variable of the pattern, or all of them as a tuple.

    Declares one key with the value ``1``. A mark stays ``grace_seconds`` longer than its token is valid, for hosts
    whose clocks differ. An id is what a stranger sent: one that cannot be part of a key, or is longer than
    ``longest_id``, is ``Invalid``. ``most_seconds`` tells the audit how far ahead a token may expire.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, grace_seconds: float = GRACE_SECONDS, longest_id: int = LONGEST_ID,
        most_seconds: float | None = None, **facts: Unpack[PatternFacts],
    ) -> None:
        self.grace_seconds = grace_seconds
        self.longest_id = longest_id
        scripts = tuple(f"revocation/{name}.lua" for name in ("use_once", "use_and_take", "revoke"))
        self.mark = FlagKey(
            keyspace, pattern, scripts=scripts,
            ttl=Until(at_most=None if most_seconds is None else most_seconds + grace_seconds), **facts,
        )
        if not self.mark.template.names:
            raise DeclarationError(f"{pattern}: a mark needs a variable for the id of its token")

    def use_once(self, on: ScriptRunner, identifier: Identifier, *, until: float) -> Awaitable[bool]:
        """Mark a token as used; true for the first use only. ``until`` is when the token expires, in unix seconds.

        One atomic step: of any number of callers exactly one hears true. A token that has already expired beyond the
        grace is refused, since its mark would not last. Not repeated after a lost reply: that is ``ReplyLost``, and
        the token must count as used.
        """
        return USE_ONCE(on, keys=[self._mark(identifier)], args=[self._until_ms(until)], decode=lambda code: code == 1)

    def use(self, on: ScriptRunner, identifier: Identifier, *, until: float) -> Awaitable[TokenUse]:
        """As ``use_once``, and says why not."""
        return USE_ONCE(on, keys=[self._mark(identifier)], args=[self._until_ms(until)], decode=_USES.__getitem__)

    def use_and_take(
        self, on: ScriptRunner, identifier: Identifier, kept: RecordRef[R], *, until: float
    ) -> Awaitable[TokenTaken[R]]:
        """Mark a token as used and take the record kept for its first user, in one atomic step.

        The record's key must share the tag of the mark. A record that does not decode is ``Corrupt`` and holds what
        was taken.
        """

        def read(reply: list[Reply]) -> TokenTaken[R]:
            fields = dict(zip(reply[1::2], reply[2::2], strict=True))
            try:
                return TokenTaken(_USES[reply[0]], kept.record.decode(fields) if fields else None)
            except Undecodable as error:
                raise kept.corrupt(error, raw=_shown(fields)) from None

        return USE_AND_TAKE(on, keys=[self._mark(identifier), kept], args=[self._until_ms(until)], decode=read)

    def revoke(self, on: ScriptRunner, *identifiers: Identifier, until: float) -> Awaitable[int]:
        """Mark tokens that expire at ``until`` as revoked; says how many were not marked before.

        A mark that is there already is lengthened if need be, never shortened. One atomic step for all that share a
        tag. May be repeated.
        """
        groups: dict[str, list[FlagRef]] = {}
        for identifier in identifiers:
            mark = self._mark(identifier)
            groups.setdefault(self.mark.tag.of(mark.arguments), []).append(mark)
        until_ms = self._until_ms(until)
        rows = [group[start : start + MOST_AT_ONCE] for group in groups.values()
                for start in range(0, len(group), MOST_AT_ONCE)]
        return _Sum(_Together(on, [REVOKE(on, keys=row, args=[until_ms]) for row in rows]))

    def is_revoked(self, on: Executor, identifier: Identifier) -> Awaitable[bool]:
        """Whether a token was revoked or used."""
        return self._mark(identifier).is_raised(on)

    def revoked_among(self, on: ScriptRunner, identifiers: Sequence[Identifier]) -> Awaitable[list[bool]]:
        """The same for many tokens at once, in the order given; one round trip, whatever their tags."""
        return _Together(on, [self.is_revoked(on, identifier) for identifier in identifiers])

    def _mark(self, identifier: Identifier) -> FlagRef:
        variables = identifier if isinstance(identifier, tuple) else (identifier,)
        if any(len(str(variable)) > self.longest_id for variable in variables):
            raise Invalid(f"a token's id may have {self.longest_id} characters at most")
        try:
            return self.mark.at(*variables)
        except DeclarationError as error:
            if len(variables) != len(self.mark.template.names):
                raise
            raise Invalid("a token's id holds characters that it may not hold") from error

    def _until_ms(self, until: float) -> int:
        if not 0 < until < 100_000_000_000:
            raise Invalid(f"a token's expiry must be a unix time in seconds, got {until!r}")
        return math.ceil((until + self.grace_seconds) * 1000)


class _Together(Awaitable[list[T]]):
    """The answers in order. On a connection all calls leave together; on a pipeline they are queued already."""

    def __init__(self, on: ScriptRunner, calls: list[Awaitable[T]]) -> None:
        self._at_once = is_client(on)
        self._calls = calls

    def __await__(self) -> Generator[Any, Any, list[T]]:
        return (yield from self._answers().__await__())

    async def _answers(self) -> list[T]:
        if self._at_once:
            return list(await asyncio.gather(*self._calls))
        return [await call for call in self._calls]


class _Sum(Awaitable[int]):
    """The sum of answers."""

    def __init__(self, parts: Awaitable[list[int]]) -> None:
        self._parts = parts

    def __await__(self) -> Generator[Any, Any, int]:
        return sum((yield from self._parts.__await__()))


def _shown(fields: dict[bytes, bytes]) -> bytes:
    """What was taken, as text that can be put back by hand."""
    text = {name.decode(errors="backslashreplace"): value.decode(errors="backslashreplace")
            for name, value in fields.items()}
    return msgspec.json.encode(text)
