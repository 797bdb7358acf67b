"""Who or how many by day: a set of members for each day, or one number."""

from collections.abc import Awaitable
from typing import Any, ClassVar, Unpack
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import (
    Executor,
    IntegerKey,
    Keyspace,
    MapKey,
    RecordKey,
    SetKey,
    SetRef,
)
from keystead.keys.keyspace import Facts
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.rotation import SCRIPTS, Rotation, RotationState

ADD = Script("keystead.patterns", "scripts/daysets/add.lua")
INCREMENT = Script("keystead.patterns", "scripts/daysets/increment.lua")
LATE = -1


class _ByDay:
    """What sets and numbers share: which day it is, the first one that is here, and rotation.

    Keys are ``{prefix}:{unix_date}`` (with ``monthly``: ``{prefix}:{unix_month}``) and ``{prefix}:earliest``; for
    rotation ``{prefix}:{unix_date}:rotating``, ``{prefix}:rotation`` and ``{prefix}:late``.
    """

    _key: ClassVar[Any]
    _scripts: ClassVar[tuple[str, ...]]

    def __init__(
        self, keyspace: Keyspace, prefix: str, *, zone: str | None, monthly: bool = False, held_days: int = 1,
        table: str | None = None, **facts: Unpack[PatternFacts],
    ) -> None:
        self.prefix, self.monthly, self.held_days, self.table = prefix, monthly, held_days, table
        self.zone = None if zone is None else ZoneInfo(zone)
        variable = "unix_month" if monthly else "unix_date"
        scripts = (*self._scripts, *SCRIPTS)
        self.earliest_key = IntegerKey(
            keyspace, f"{prefix}:earliest", **told(facts, "the first that may be here", scripts=scripts, personal=False)
        )
        self.state_key = RecordKey(
            keyspace, f"{prefix}:rotation", RotationState,
            **told(facts, "how far it was rotated", scripts=scripts, personal=False),
        )
        self.late_key = MapKey(
            keyspace, f"{prefix}:late", int, fields=(f"{{{variable}}}",),
            **told(facts, "how many came after the rotation", scripts=scripts, personal=False),
        )
        day = f"{prefix}:{{{variable}}}"
        self.day_key = self._declare(keyspace, day, told(facts, scripts=scripts))
        aside = told(facts, "put aside while it is rotated", scripts=scripts)
        self.aside_key = self._declare(keyspace, f"{day}:rotating", aside)
        self.rotation = Rotation(self.earliest_key.at(), self.state_key.at())

    def _declare(self, keyspace: Keyspace, pattern: str, facts: Facts) -> Any:
        raise NotImplementedError

    def day_of(self, at: float) -> int:
        """The day, or month, that the instant falls on."""
        if self.zone is None:
            raise DeclarationError(f"{self.prefix} counts canonical days: give the day, not an instant")
        return dates.unix_month(at, self.zone) if self.monthly else dates.unix_date(at, self.zone)

    def earliest(self, on: Executor) -> Awaitable[int | None]:
        """The first day that may still be here."""
        return self.earliest_key.at().get(on)

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[str | None]:
        """Put the earliest day aside and return the id of its rotation, an older one if it was begun before.

        None when the day is not the earliest, or another is under way. What comes for the day from now on is late.
        """
        return self.rotation.begin(on, day, rotation_id, [(self.day_key.at(day), self.aside_key.at(day))])

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[bool]:
        """Forget the day that was put aside; says whether this rotation was under way."""
        return self.rotation.end(on, day, rotation_id, [self.aside_key.at(day)])

    def late(self, on: Executor) -> Awaitable[dict[str, int]]:
        """How many came too late, by day."""
        return self.late_key.at().all(on)

    def _day(self, at: float | None, day: int | None) -> int:
        if (at is None) == (day is None):
            raise DeclarationError(f"{self.prefix}: say when: at= an instant, or day= a day, and not both")
        return self.day_of(at) if at is not None else int(day or 0)

    def _keys(self, day: int) -> list[Any]:
        return [self.earliest_key.at(), self.state_key.at(), self.late_key.at(), self.day_key.at(day)]


class DaySet(_ByDay):
    """The members of each day, each once: who was active, say."""

    _scripts = ("daysets/add.lua",)

    def _declare(self, keyspace: Keyspace, pattern: str, facts: Facts) -> SetKey[str]:
        return SetKey(keyspace, pattern, str, **facts)

    def add(self, on: ScriptRunner, *members: str, at: float | None = None, day: int | None = None) -> Awaitable[int]:
        """Add to the day of ``at``, or to ``day``; says how many were new, or ``LATE``. One atomic step.

        When the day was rotated, nobody knows any more who was in it: late members are only counted.
        """
        if not members:
            raise DeclarationError(f"{self.prefix}: there is no member to add")
        chosen = self._day(at, day)
        return ADD(on, keys=self._keys(chosen), args=[int(chosen), *members], decode=int)

    def size(self, on: Executor, day: int) -> Awaitable[int]:
        """How many members the day has, whether or not its rotation is under way."""
        names = [reference.name(on.layout) for reference in self._both(day)]
        return on.run_block([("SCARD", name) for name in names], sum, repeat=True)

    def contains(self, on: Executor, member: str, day: int) -> Awaitable[bool]:
        names = [reference.name(on.layout) for reference in self._both(day)]
        return on.run_block([("SISMEMBER", name, member) for name in names], any, repeat=True)

    def _both(self, day: int) -> list[SetRef[str]]:
        return [self.day_key.at(day), self.aside_key.at(day)]


class DayNumber(_ByDay):
    """One number for each day: how many people joined, say."""

    _scripts = ("daysets/increment.lua",)

    def _declare(self, keyspace: Keyspace, pattern: str, facts: Facts) -> IntegerKey:
        return IntegerKey(keyspace, pattern, **facts)

    def increment(
        self, on: ScriptRunner, amount: int = 1, *, at: float | None = None, day: int | None = None
    ) -> Awaitable[int]:
        """Add to the day of ``at``, or to ``day``, and return its number, or ``LATE``. One atomic step."""
        chosen = self._day(at, day)
        return INCREMENT(on, keys=self._keys(chosen), args=[int(chosen), amount], decode=int)

    def read(self, on: Executor, day: int) -> Awaitable[int]:
        """The day's number, whether or not its rotation is under way."""
        names = [self.day_key.at(day).name(on.layout), self.aside_key.at(day).name(on.layout)]
        return on.run_block([("GET", name) for name in names], lambda replies: sum(int(one or 0) for one in replies),
                            repeat=True)
