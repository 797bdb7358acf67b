"""Totals that are kept for ever, and counts by month."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Unpack
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.dates import UnixMonth
from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Executor, IntegerKey, Keyspace, Reply
from keystead.patterns.by_day import name_of
from keystead.patterns.facts import PatternFacts, told

INCREMENT = Script("keystead.patterns", "scripts/counters/increment.lua")
DROP = Script("keystead.patterns", "scripts/counters/drop.lua")
_SCRIPTS = ("counters/increment.lua", "counters/drop.lua")


class Counter:
    """One total: ``{prefix}:count``. Its ``name`` is the prefix without ``stats:``."""

    def __init__(self, keyspace: Keyspace, prefix: str, **facts: Unpack[PatternFacts]) -> None:
        self.name, self.purpose = name_of(prefix), facts["purpose"]
        self.key = IntegerKey(keyspace, f"{prefix}:count", **facts)

    def increment(self, on: Executor, amount: int = 1) -> Awaitable[int]:
        """Add, and return the total. Part of the caller's pipeline if that is what it is given."""
        return self.key.at().increment(on, _checked(self.key.pattern, amount))

    def read(self, on: Executor) -> Awaitable[int]:
        """The total; 0 if nothing was ever counted."""
        return on.run(("GET", self.key.at().name(on.layout)), lambda reply: int(reply or 0), repeat=True)


@dataclass(frozen=True, slots=True)
class Counted:
    """A total, and the part of it in one month."""

    total: int
    month: int


class MonthlyCounter:
    """A total and its counts by month, in step: ``{prefix}:count``, ``{prefix}:monthly:{unix_month}:count`` and
    ``{prefix}:monthly:earliest``. An instant falls into the month of ``zone``. Its ``name`` is the prefix without
    ``stats:``.
    """

    def __init__(self, keyspace: Keyspace, prefix: str, *, zone: str, **facts: Unpack[PatternFacts]) -> None:
        self.name, self.purpose = name_of(prefix), facts["purpose"]
        self.zone = ZoneInfo(zone)
        self.total_key = IntegerKey(keyspace, f"{prefix}:count", **told(facts, scripts=_SCRIPTS))
        self.month_key = IntegerKey(
            keyspace, f"{prefix}:monthly:{{unix_month}}:count", **told(facts, "by month", scripts=_SCRIPTS)
        )
        self.earliest_key = IntegerKey(
            keyspace, f"{prefix}:monthly:earliest", **told(facts, "first month that is here", scripts=_SCRIPTS)
        )

    def month_of(self, at: float) -> UnixMonth:
        """The month that the instant falls into."""
        return dates.unix_month(at, self.zone)

    def increment(self, on: ScriptRunner, amount: int = 1, *, at: float) -> Awaitable[Counted]:
        """Add to the total and to the month of ``at``, in one atomic step."""
        month = self.month_of(at)
        keys = [self.total_key.at(), self.month_key.at(month), self.earliest_key.at()]
        return INCREMENT(on, keys=keys, args=[int(month), _checked(self.month_key.pattern, amount)], decode=_counted)

    def read(self, on: Executor, month: int) -> Awaitable[Counted]:
        """The total and the count of one month, as of one moment."""
        layout = on.layout
        gets = [("GET", self.total_key.at().name(layout)), ("GET", self.month_key.at(month).name(layout))]
        return on.run_block(gets, lambda replies: _counted([int(reply or 0) for reply in replies]), repeat=True)

    def earliest(self, on: Executor) -> Awaitable[int | None]:
        """The first month that may still be here."""
        return self.earliest_key.at().get(on)

    async def drop_before(self, on: Valkey, month: int) -> bool:
        """Forget the months before ``month``; says whether there were any. The total stays. Safe to repeat."""
        first = await self.earliest(on)
        if first is None or first >= month:
            return False
        gone = [self.month_key.at(each) for each in range(first, month)]
        return bool(await DROP(on, keys=[self.earliest_key.at(), *gone], args=[first, int(month)]))


def _counted(reply: Reply) -> Counted:
    return Counted(reply[0], reply[1])


def _checked(pattern: str, amount: int) -> int:
    if amount.__class__ is not int or not 1 <= amount <= 10**12:
        raise DeclarationError(f"{pattern}: an amount is a whole number from 1 on, got {amount!r}")
    return amount
