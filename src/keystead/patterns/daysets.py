"""Who or how many by day: a set of members for each day, or one number."""

from collections.abc import Awaitable
from typing import Any, ClassVar, Unpack

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import (
    Executor,
    IntegerKey,
    KeyReference,
    Keyspace,
    MapKey,
    RecordKey,
    Reply,
    SetKey,
)
from keystead.keys.codecs import INTEGER
from keystead.keys.keyspace import Facts
from keystead.patterns.by_day import LATE as LATE
from keystead.patterns.by_day import ByDay, name_of
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.rotation import (
    EMPTIES,
    LATE_SCRIPTS,
    SCRIPTS,
    LateCounts,
    Rotation,
    RotationState,
    empty_aside,
)

ADD = Script("keystead.patterns", "scripts/daysets/add.lua")
INCREMENT = Script("keystead.patterns", "scripts/daysets/increment.lua")
_MOST_AMOUNT = 10**12


class _ByDay(ByDay):
    """What sets and numbers share: which day it is, the first one that is here, and rotation.

    Keys are ``{prefix}:{unix_date}`` (with ``monthly``: ``{prefix}:{unix_month}``) and ``{prefix}:earliest``; for
    rotation ``{prefix}:{unix_date}:rotating``, ``{prefix}:rotation``, ``{prefix}:late`` and ``{prefix}:late:rotating``.
    """

    _scripts: ClassVar[tuple[str, ...]]
    _empties: ClassVar[tuple[str, ...]] = ()
    _count: ClassVar[str]

    def __init__(
        self, keyspace: Keyspace, prefix: str, *, zone: str | None, monthly: bool = False, held_days: int = 1,
        table: str | None = None, rotates_at: str = "02:00", **facts: Unpack[PatternFacts],
    ) -> None:
        super().__init__(name_of(prefix), zone=zone, table=table, held_days=held_days, rotates_at=rotates_at,
                         purpose=facts["purpose"], monthly=monthly)
        self.prefix = prefix
        variable = "unix_month" if monthly else "unix_date"
        scripts = (*self._scripts, *SCRIPTS)
        self.earliest_key = IntegerKey(
            keyspace, f"{prefix}:earliest", **told(facts, "the first that may be here", scripts=scripts, personal=False)
        )
        self.state_key = RecordKey(
            keyspace, f"{prefix}:rotation", RotationState,
            **told(facts, "how far it was rotated", scripts=(*scripts, *LATE_SCRIPTS, *self._empties), personal=False),
        )
        self.late_key = MapKey(
            keyspace, f"{prefix}:late", int, fields=(f"{{{variable}}}",),
            **told(facts, "how many came after the rotation", scripts=(*self._scripts, *LATE_SCRIPTS), personal=False),
        )
        self.late_aside_key = MapKey(
            keyspace, f"{prefix}:late:rotating", int, fields=(f"{{{variable}}}",),
            **told(facts, "late ones, put aside while they are stored", scripts=LATE_SCRIPTS, personal=False),
        )
        day = f"{prefix}:{{{variable}}}"
        self.day_key = self._declare(keyspace, day, told(facts, scripts=scripts))
        aside = told(facts, "put aside while it is rotated", scripts=(*scripts, *self._empties))
        self.aside_key = self._declare(keyspace, f"{day}:rotating", aside)
        self.rotation = Rotation(self.earliest_key.at(), self.state_key.at())
        self._late = LateCounts(self.late_key.at(), self.late_aside_key.at(), self.state_key.at(), int)

    def _declare(self, keyspace: Keyspace, pattern: str, facts: Facts) -> Any:
        raise NotImplementedError

    # -- reading ----------------------------------------------------------------------------------------------------

    def earliest(self, on: Executor) -> Awaitable[int | None]:
        """The first day that may still be here."""
        return self.earliest_key.at().get(on)

    def read(self, on: Executor, day: int) -> Awaitable[int]:
        """The day's number, or how many members it has, whether or not its rotation is under way."""
        days = self.checked_range(day, day)
        return on.run_block(self._reads(on, days), lambda replies: self._read(days, replies)[day], repeat=True)

    def read_range(self, on: Executor, first: int, last: int) -> Awaitable[dict[int, int]]:
        """``read`` of the days from ``first`` to ``last``, both included, as of one moment and in one round trip."""
        days = self.checked_range(first, last)
        return on.run_block(self._reads(on, days), lambda replies: self._read(days, replies), repeat=True)

    def _reads(self, on: Executor, days: range) -> list[tuple[str, bytes]]:
        keys = self.day_key, self.aside_key
        return [(self._count, key.at(day).name(on.layout)) for day in days for key in keys]

    def _read(self, days: range, replies: list[Reply]) -> dict[int, int]:
        halves = replies[::2], replies[1::2]
        return {day: self._number(self.day_key.at(day), live) + self._number(self.aside_key.at(day), aside)
                for day, live, aside in zip(days, *halves, strict=True)}

    def _number(self, reference: KeyReference, reply: Reply) -> int:
        raise NotImplementedError

    # -- rotation ---------------------------------------------------------------------------------------------------

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[str | None]:
        """Put the earliest day aside and return the id of its rotation, an older one if it was begun before.

        None when the day is not the earliest, or another is under way. What comes for the day from now on is late.
        """
        return self.rotation.begin(on, day, rotation_id, [(self.day_key.at(day), self.aside_key.at(day))])

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[bool]:
        """Forget the day that was put aside; says whether this rotation was under way."""
        return self.rotation.end(on, day, rotation_id, [self.aside_key.at(day)])

    def rotation_state(self, on: Executor) -> Awaitable[RotationState | None]:
        """How far days were rotated, and what is under way."""
        return self.rotation.state(on)

    def late(self, on: Executor) -> Awaitable[dict[int, int]]:
        """How many came too late and are not stored yet, by day."""
        return self._late.all(on)

    def begin_late(self, on: ScriptRunner, late_id: str) -> Awaitable[tuple[str, dict[int, int]] | None]:
        """Put what came late aside: the id under which it lies, an older one if that was begun before, and how many by
        day. None when nothing came late. Store it with the id, then ``end_late``. One atomic step, safe to repeat.
        """
        return self._late.begin(on, late_id)

    def end_late(self, on: ScriptRunner, late_id: str) -> Awaitable[bool]:
        """Forget what came late and was put aside under this id; says whether it was there."""
        return self._late.end(on, late_id)

    def _keys(self, day: int) -> list[Any]:
        return [self.earliest_key.at(), self.state_key.at(), self.late_key.at(), self.day_key.at(day)]


class DaySet(_ByDay):
    """The members of each day, each once: who was active, say."""

    _scripts = ("daysets/add.lua",)
    _empties = EMPTIES
    _count = "SCARD"

    def _declare(self, keyspace: Keyspace, pattern: str, facts: Facts) -> SetKey[str]:
        return SetKey(keyspace, pattern, str, **facts)

    def add(
        self, on: ScriptRunner, *members: str, at: float | None = None, day: int | None = None, today: int | None = None
    ) -> Awaitable[int]:
        """Add to the day of ``at``, or to ``day``; says how many were new, or ``LATE``. One atomic step.

        When the day was rotated, nobody knows any more who was in it: late members are only counted. With ``today`` a
        day in the future is refused.
        """
        if not members:
            raise DeclarationError(f"{self.prefix}: there is no member to add")
        chosen = self.chosen_day(at, day, today)
        return ADD(on, keys=self._keys(chosen), args=[chosen, *members], decode=int)

    def empty_aside(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[None]:
        """Forget the members of a day that was put aside and is stored, step by step, over a connection.

        For before ``end_rotation``, which would free a large set at once and make other calls wait. A repeat is safe.
        """
        return empty_aside(on, self.state_key.at(), [self.aside_key.at(day)], day, rotation_id)

    def size(self, on: Executor, day: int) -> Awaitable[int]:
        """How many members the day has, whether or not its rotation is under way."""
        return self.read(on, day)

    def _number(self, reference: KeyReference, reply: Reply) -> int:
        return int(reply)

    def contains(self, on: Executor, member: str, day: int) -> Awaitable[bool]:
        names = [key.at(day).name(on.layout) for key in (self.day_key, self.aside_key)]
        return on.run_block([("SISMEMBER", name, member) for name in names], any, repeat=True)


class DayNumber(_ByDay):
    """One number for each day: how many people joined, say."""

    _scripts = ("daysets/increment.lua",)
    _count = "GET"

    def _declare(self, keyspace: Keyspace, pattern: str, facts: Facts) -> IntegerKey:
        return IntegerKey(keyspace, pattern, **facts)

    def increment(
        self, on: ScriptRunner, amount: int = 1, *, at: float | None = None, day: int | None = None,
        today: int | None = None,
    ) -> Awaitable[int]:
        """Add to the day of ``at``, or to ``day``, and return its number, or ``LATE``. One atomic step.

        With ``today`` a day in the future is refused.
        """
        if amount.__class__ is not int or not 1 <= amount <= _MOST_AMOUNT:
            raise DeclarationError(f"{self.name}: an amount is a whole number from 1 on, got {amount!r}")
        chosen = self.chosen_day(at, day, today)
        return INCREMENT(on, keys=self._keys(chosen), args=[chosen, amount], decode=int)

    def _number(self, reference: KeyReference, reply: Reply) -> int:
        return 0 if reply is None else reference._decoded(INTEGER, reply)
