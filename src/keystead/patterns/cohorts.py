"""Who came back: people by the day they joined, in two sets for each period: those who came back, and those not yet.

::

    RETENTION = Cohorts(MEMBERS, "stats:retention", zone="America/Los_Angeles", table="retention_stats",
                        personal=True, purpose="who came back after so many days")
    await RETENTION.join(valkey, sub, at=now)
    await RETENTION.active(valkey, sub, joined_day=created, at=now)

declares ``{prefix}:{period}:{retained}:{unix_date}`` and ``{prefix}:{period}:{retained}:earliest``, where a period is
``7day`` and retained ``true`` or ``false``; for rotation ``...:{unix_date}:rotating``, ``{prefix}:rotation``,
``{prefix}:late`` and ``{prefix}:late:rotating``.
"""

from collections.abc import Awaitable, Sequence
from typing import Final, Unpack

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Executor, IntegerKey, KeyReference, Keyspace, MapKey, OneOf, RecordKey, Reply, SetKey, SetRef
from keystead.keys.codecs import INTEGER
from keystead.keys.keyspace import Facts
from keystead.patterns.by_day import ByDay, Known, name_of
from keystead.patterns.derived import around
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.rotation import (
    EMPTIES,
    LATE_SCRIPTS,
    LateCounts,
    RotationState,
    empty_aside,
    text_or_none,
)
from keystead.telemetry import counts

JOIN: Final = Script("keystead.patterns", "scripts/cohorts/join.lua")
ACTIVE: Final = Script("keystead.patterns", "scripts/cohorts/active.lua")
BEGIN: Final = Script("keystead.patterns", "scripts/cohorts/begin_rotation.lua")
END: Final = Script("keystead.patterns", "scripts/cohorts/end_rotation.lua")
_WRITES = ("cohorts/join.lua", "cohorts/active.lua")
_ROTATES = ("cohorts/begin_rotation.lua", "cohorts/end_rotation.lua")
_RETAINED = ("true", "false")

counts.describe("cohorts_late", "members who joined or were active after their cohort was rotated, by family")

Sizes = dict[int, tuple[int, int]]


class Cohorts(ByDay):
    """People by the day they joined; for each of ``periods``, in days, those who were active at least so long after.

    Activity more than ``window_days`` after joining changes nothing, so that a cohort older than that is due.
    """

    def __init__(
        self, keyspace: Keyspace, prefix: str, *, periods: Sequence[int] = (0, 1, 7, 30, 90), window_days: int = 182,
        zone: str | None, table: str | None = None, rotates_at: str = "02:00", **facts: Unpack[PatternFacts],
    ) -> None:
        super().__init__(name_of(prefix), zone=zone, table=table, held_days=window_days + 1, rotates_at=rotates_at,
                         purpose=facts["purpose"])
        self.prefix, self.periods, self.window_days = prefix, tuple(periods), window_days
        if not periods or list(periods) != sorted(set(periods)) or not 0 <= periods[0] <= periods[-1] <= window_days:
            raise DeclarationError(f"{prefix}: periods are days that grow, from 0 to {window_days}, got {periods}")
        kinds = {"period": OneOf(*(f"{period}day" for period in periods)), "retained": OneOf(*_RETAINED)}
        self._declare(keyspace, facts, kinds)
        self._late = LateCounts(self.late_key.at(), self.late_aside_key.at(), self.state_key.at(), int)
        pairs = [(period, retained) for period in self.periods for retained in _RETAINED]
        self._earliest = [self.earliest_key.at(f"{period}day", retained) for period, retained in pairs]

    def _declare(self, keyspace: Keyspace, facts: PatternFacts, kinds: dict[str, OneOf]) -> None:
        prefix, each = self.prefix, f"{self.prefix}:{{period}}:{{retained}}"
        scripts = (*_WRITES, *_ROTATES)

        def split(said: Facts) -> Facts:
            return {**said, "kinds": kinds}

        self.members_key = SetKey(
            keyspace, f"{each}:{{unix_date}}", str, member="who joined that day", **split(told(facts, scripts=scripts))
        )
        self.aside_key = SetKey(
            keyspace, f"{each}:{{unix_date}}:rotating", str, member="who joined that day",
            **split(told(facts, "put aside while it is rotated", scripts=(*_ROTATES, *EMPTIES))),
        )
        self.earliest_key = IntegerKey(
            keyspace, f"{each}:earliest",
            **split(told(facts, "first day that may still be here", scripts=scripts, personal=False)),
        )
        self.state_key = RecordKey(
            keyspace, f"{prefix}:rotation", RotationState,
            **told(facts, "how far it was rotated", scripts=(*scripts, *LATE_SCRIPTS, *EMPTIES), personal=False),
        )
        self.late_key = MapKey(
            keyspace, f"{prefix}:late", int, fields=("{unix_date}",),
            **told(facts, "how many joined after the rotation", scripts=("cohorts/join.lua", *LATE_SCRIPTS),
                   personal=False),
        )
        self.late_aside_key = MapKey(
            keyspace, f"{prefix}:late:rotating", int, fields=("{unix_date}",),
            **told(facts, "late ones, put aside while they are stored", scripts=LATE_SCRIPTS, personal=False),
        )

    # -- counting ---------------------------------------------------------------------------------------------------

    def join(
        self, on: ScriptRunner, member: str, *, at: float | None = None, day: int | None = None,
        today: int | None = None,
    ) -> Awaitable[int]:
        """Put the member among those of the day who have not come back yet, for every period. One atomic step.

        Says 1 for a new member and 0 for one who is in the cohort already, come back or not. ``LATE`` when the cohort
        was rotated: then the member is only counted. With ``today`` a day in the future is refused.
        """
        chosen = self.chosen_day(at, day, today)
        keys: list[KeyReference] = [self.state_key.at(), self.late_key.at()]
        for period in self.periods:
            retained, waiting = self._sets(period, chosen)
            keys += [self.earliest_key.at(f"{period}day", "false"), waiting, retained]
        return JOIN(on, keys=keys, args=[chosen, member], decode=self._told)

    def active(
        self, on: ScriptRunner, member: str, *, joined_day: int, at: float | None = None, day: int | None = None,
        today: int | None = None,
    ) -> Awaitable[int]:
        """Move the member among those who came back, for every period that has passed since ``joined_day``.

        Says how many periods it is new for; a member whom the cohort does not know stays unknown. Nothing happens
        before the day of joining, and more than ``window_days`` after it. ``LATE`` when the cohort was rotated, which
        happens only to activity that is told late. One atomic step.
        """
        elapsed = self.chosen_day(at, day, today) - self.checked_day(joined_day)
        passed = [period for period in self.periods if period <= elapsed]
        if not passed or elapsed > self.window_days:
            return Known(0)
        keys: list[KeyReference] = [self.state_key.at()]
        for period in passed:
            retained, waiting = self._sets(period, joined_day)
            keys += [self.earliest_key.at(f"{period}day", "true"), waiting, retained]
        return ACTIVE(on, keys=keys, args=[int(joined_day), member], decode=self._told)

    def _sets(self, period: int, day: int) -> list[SetRef[str]]:
        return [self.members_key.at(f"{period}day", retained, day) for retained in _RETAINED]

    def _told(self, reply: Reply) -> int:
        if reply < 0:
            counts.add("cohorts_late", family=self.name)
        return int(reply)

    # -- reading ----------------------------------------------------------------------------------------------------

    def earliest(self, on: Executor) -> Awaitable[int | None]:
        """The first cohort that may still be here, of whatever period. None if nobody ever joined."""
        return on.run_block(
            [("GET", reference.name(on.layout)) for reference in self._earliest],
            lambda replies: min(self._numbers(replies), default=None), repeat=True,
        )

    def _numbers(self, replies: Sequence[Reply]) -> list[int]:
        pairs = zip(self._earliest, replies, strict=True)
        return [reference._decoded(INTEGER, reply) for reference, reply in pairs if reply is not None]

    def sizes(self, on: Executor, day: int) -> Awaitable[Sizes]:
        """By period, how many of the day's cohort came back and how many did not yet; also while it is rotated."""
        return on.run_block(self._reads(on, range(day, day + 1)), self._sizes, repeat=True)

    def sizes_range(self, on: Executor, first: int, last: int) -> Awaitable[dict[int, Sizes]]:
        """``sizes`` of the days from ``first`` to ``last``, both included, as of one moment and in one round trip."""
        days = self.checked_range(first, last)
        each = 4 * len(self.periods)
        return on.run_block(
            self._reads(on, days),
            lambda replies: {day: self._sizes(replies[n * each : n * each + each]) for n, day in enumerate(days)},
            repeat=True,
        )

    def _reads(self, on: Executor, days: range) -> list[tuple[str, str]]:
        ends = [
            around(key, "unix_date", {"period": f"{period}day", "retained": retained}, on.layout)
            for period in self.periods for retained in _RETAINED for key in (self.members_key, self.aside_key)
        ]
        return [("SCARD", f"{head}{day}{tail}") for day in days for head, tail in ends]

    def _sizes(self, replies: Sequence[Reply]) -> Sizes:
        fours = zip(self.periods, range(0, len(replies), 4), strict=True)
        return {period: (sum(replies[at : at + 2]), sum(replies[at + 2 : at + 4])) for period, at in fours}

    # -- rotation ---------------------------------------------------------------------------------------------------

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[str | None]:
        """Put the earliest cohort aside, all periods together; its rotation's id, an older one if it was begun before.

        None when the day is not the earliest, or another is under way. Whoever joins it from now on is late. Costs the
        same however many members there are; safe to repeat.
        """
        moved = [key.at(*which, day) for which in self._which() for key in (self.members_key, self.aside_key)]
        keys = [self.state_key.at(), *self._earliest, *moved]
        return BEGIN(on, keys=keys, args=[int(day), rotation_id, len(self._earliest)], decode=text_or_none)

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[bool]:
        """Forget the cohort that was put aside, once it is stored; says whether this rotation was under way.

        Each ``earliest`` that is not beyond the day already is set to the next one.
        """
        aside = [self.aside_key.at(*which, day) for which in self._which()]
        keys = [self.state_key.at(), *self._earliest, *aside]
        return END(on, keys=keys, args=[int(day), rotation_id, len(self._earliest)], decode=bool)

    def empty_aside(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[None]:
        """Forget the members of a cohort that was put aside and is stored, step by step, over a connection.

        For before ``end_rotation``, which would free a large set at once and make other calls wait. A repeat is safe.
        """
        aside = [self.aside_key.at(*which, day) for which in self._which()]
        return empty_aside(on, self.state_key.at(), aside, day, rotation_id)

    def _which(self) -> list[tuple[str, str]]:
        return [(f"{period}day", retained) for period in self.periods for retained in _RETAINED]

    def rotation_state(self, on: Executor) -> Awaitable[RotationState | None]:
        """How far days were rotated, and what is under way."""
        return self.state_key.at().get(on)

    def late(self, on: Executor) -> Awaitable[dict[int, int]]:
        """How many joined too late and are not stored yet, by day."""
        return self._late.all(on)

    def begin_late(self, on: ScriptRunner, late_id: str) -> Awaitable[tuple[str, dict[int, int]] | None]:
        """Put what came late aside: the id under which it lies, an older one if that was begun before, and how many by
        day. None when nothing came late. Store it with the id, then ``end_late``. One atomic step, safe to repeat.
        """
        return self._late.begin(on, late_id)

    def end_late(self, on: ScriptRunner, late_id: str) -> Awaitable[bool]:
        """Forget what came late and was put aside under this id; says whether it was there."""
        return self._late.end(on, late_id)
