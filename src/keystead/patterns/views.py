"""Views by day and by the value of a dimension: how many, and by how many different people; and how many of all time.

::

    VIEWS = DimensionViews(CONTENT, "stats:interactive_prompt_sessions", zone="America/Los_Angeles",
                           table="journey_subcategory_view_stats", personal=True, purpose="sessions by subcategory")
    await VIEWS.viewed(valkey, "meditation", sub, at=now)

declares ``{prefix}:{subcategory}:{unix_date}:subs`` (who) and, below ``{prefix}:bysubcat``, ``subcategories``,
``earliest``, ``total_views:{unix_date}``, and of all days before the earliest ``total_views`` and ``total_users``; for
rotation ``total_views:{unix_date}:rotating``, ``rotation``, ``late`` and ``late:rotating``. ``names`` spells them
otherwise: ``TOTALS_NAMES`` is what an older program used.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final, Unpack

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import Executor, IntegerKey, KeyReference, Keyspace, Layout, MapKey, RecordKey, Reply, SetKey
from keystead.keys.executor import Argument
from keystead.keys.keyspace import Facts
from keystead.keys.variables import TEXT
from keystead.patterns.by_day import ByDay, name_of
from keystead.patterns.cache import Cache
from keystead.patterns.daily_chart import day_cache
from keystead.patterns.derived import around, pieces
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.rotation import LATE_SCRIPTS, LateCounts, RotationState, text_or_none
from keystead.telemetry import counts

VIEW: Final = Script("keystead.patterns", "scripts/views/view.lua")
READ: Final = Script("keystead.patterns", "scripts/views/read.lua")
ALL_TIME: Final = Script("keystead.patterns", "scripts/views/all_time.lua")
EARLIEST: Final = Script("keystead.patterns", "scripts/views/earliest.lua")
BEGIN: Final = Script("keystead.patterns", "scripts/views/begin_rotation.lua")
END: Final = Script("keystead.patterns", "scripts/views/end_rotation.lua")
END_LATE: Final = Script("keystead.patterns", "scripts/views/end_late.lua")
_ROTATES = ("views/begin_rotation.lua", "views/end_rotation.lua")
_READS = ("views/read.lua", "views/all_time.lua")
_LATE = (LATE_SCRIPTS[0], "views/end_late.lua")
OTHER: Final = "other"
_LONGEST_VALUE = 200
_LONGEST_RANGE = 31

counts.describe("views_late", "views that came after their day was rotated, by family")
counts.describe("views_overflow", "views counted as other, because the day had too many values, by family")


@dataclass(frozen=True, slots=True)
class ViewNames:
    """How the keys of a dimension are called below the prefix. Without ``users`` there is no such total of all time.

    ``views_earliest`` is a second key that says the same as ``earliest``, for programs that look there.
    """

    head: str = "bysubcat"
    values: str = "subcategories"
    views: str = "total_views"
    users: str | None = "total_users"
    views_earliest: str | None = None


TOTALS_NAMES: Final = ViewNames(views="totals", users=None, views_earliest="totals:earliest")


@dataclass(frozen=True, slots=True)
class Viewed:
    """Where a view was counted. ``value`` is ``other`` when there were too many; a late view is counted apart."""

    value: str
    new: bool
    late: bool = False


@dataclass(frozen=True, slots=True)
class Views:
    """How often a value was viewed on a day, and by how many different people."""

    views: int
    users: int


@dataclass(frozen=True, slots=True)
class AllTimeViews:
    """Views by value over all days; ``users`` counts each person once a day, and is None where that is not kept."""

    views: Mapping[str, int]
    users: Mapping[str, int] | None


class DimensionViews(ByDay):
    """Views by day and value of one dimension. A day has at most ``most_values``; the rest is counted as ``other``.

    ``channel`` carries an answer about a day, which is called ``chart``, to all processes.
    """

    def __init__(
        self, keyspace: Keyspace, prefix: str, *, dimension: str = "subcategory", names: ViewNames | None = None,
        zone: str | None, table: str | None = None, held_days: int = 1, rotates_at: str = "02:00",
        most_values: int = 1000, channel: str | None = None, chart: str = "", **facts: Unpack[PatternFacts],
    ) -> None:
        super().__init__(name_of(prefix), zone=zone, table=table, held_days=held_days, rotates_at=rotates_at,
                         purpose=facts["purpose"])
        if not 1 <= most_values <= 10_000:
            raise DeclarationError(f"{prefix}: most_values lies between 1 and 10,000, got {most_values}")
        self.prefix, self.dimension, self.most_values = prefix, dimension, most_values
        self.names = ViewNames() if names is None else names
        self._declare(keyspace, facts)
        self.charts: Cache[bytes] | None = None
        if channel is not None:
            self.charts = day_cache(keyspace, chart or f"{self.name}_views", channel, self.home, facts)
        self._late = LateCounts(self.late_key.at(), self.late_aside_key.at(), self.state_key.at(),
                                self._late_field)

    def _declare(self, keyspace: Keyspace, facts: PatternFacts) -> None:
        names, head, writes = self.names, f"{self.prefix}:{self.names.head}", ("views/view.lua",)
        value_kinds = {self.dimension: (facts.get("kinds") or {}).get(self.dimension, TEXT)}

        def of(what: str, *scripts: str, personal: bool = False) -> Facts:
            return {**told(facts, what, scripts=scripts, personal=personal), "kinds": None}

        members = f"{self.prefix}:{{{self.dimension}}}:{{unix_date}}:subs"
        kept: Facts = {**of("who viewed", *writes, *_READS, *_ROTATES[1:], personal=True), "kinds": value_kinds}
        self.members_key = SetKey(keyspace, members, str, **kept)
        self.values_key = SetKey(keyspace, f"{head}:{names.values}", str, **of("every value that was seen", *writes))
        first = ("views/earliest.lua", "views/all_time.lua", *writes, *_ROTATES)
        self.earliest_keys = [IntegerKey(keyspace, f"{head}:earliest", **of("first day that may be here", *first))]
        if names.views_earliest is not None:
            pattern = f"{head}:{names.views_earliest}"
            self.earliest_keys.append(IntegerKey(keyspace, pattern, **of("the same as earliest", *first)))
        day = f"{head}:{names.views}:{{unix_date}}"
        self.day_key = MapKey(keyspace, day, int, **of("views of a day by value", *writes, *_READS, *_ROTATES))
        self.aside_key = MapKey(
            keyspace, f"{day}:rotating", int, **of("a day put aside while it is rotated", *_READS, *_ROTATES)
        )
        total = ("views/all_time.lua", "views/end_rotation.lua", "views/end_late.lua")
        self.views_key = MapKey(keyspace, f"{head}:{names.views}", int, **of("views of rotated days", *total))
        self.users_key: MapKey[int] | None = None
        if names.users is not None:
            self.users_key = MapKey(
                keyspace, f"{head}:{names.users}", int, **of("people of rotated days, each once a day", *total[:2])
            )
        self.state_key = RecordKey(
            keyspace, f"{head}:rotation", RotationState, **of("how far it was rotated", *writes, *_ROTATES, *_LATE)
        )
        fields = (f"{{unix_date}}:{{{self.dimension}:text}}",)
        self.late_key = MapKey(
            keyspace, f"{head}:late", int, fields=fields,
            **of("views that came after the rotation", *writes, *_LATE, "views/all_time.lua"),
        )
        self.late_aside_key = MapKey(
            keyspace, f"{head}:late:rotating", int, fields=fields,
            **of("late views, put aside while they are stored", *_LATE, "views/all_time.lua"),
        )

    # -- counting ---------------------------------------------------------------------------------------------------

    def viewed(
        self, on: ScriptRunner, value: str, member: str, *, at: float | None = None, day: int | None = None,
        today: int | None = None,
    ) -> Awaitable[Viewed]:
        """Count a view of ``value`` by ``member`` on the day of ``at``, or on ``day``. One atomic step.

        After the day was rotated a view is counted apart: views can still be added to what was stored, but nobody knows
        any more whether the person was among them. With ``today`` a day in the future is refused.
        """
        if len(value) > _LONGEST_VALUE:
            raise DeclarationError(f"{self.name}: a {self.dimension} has more than {_LONGEST_VALUE} characters")
        chosen = self.chosen_day(at, day, today)
        members = self.members_key.at(value, chosen)
        others = self.members_key.at(OTHER, chosen)
        keys: list[KeyReference] = [self.state_key.at(), self.late_key.at(), self.values_key.at(),
                                    self.day_key.at(chosen), members, others, *self._earliest()]
        arguments: list[Argument] = [chosen, value, member, self.most_values, OTHER]
        return VIEW(on, keys=keys, args=arguments, decode=lambda reply: self._viewed(value, reply))

    def _viewed(self, value: str, reply: Reply) -> Viewed:
        new, overflow = reply
        if overflow:
            counts.add("views_overflow", family=self.name)
            value = OTHER
        if new < 0:
            counts.add("views_late", family=self.name)
        return Viewed(value, new == 1, new < 0)

    def _earliest(self) -> list[KeyReference]:
        return [key.at() for key in self.earliest_keys]

    # -- reading ----------------------------------------------------------------------------------------------------

    def earliest(self, on: ScriptRunner) -> Awaitable[int | None]:
        """The first day that may still be here. A hash by value, as an older program kept it, becomes one number."""
        return EARLIEST(on, keys=self._earliest())

    def read(self, on: ScriptRunner, day: int) -> Awaitable[dict[str, Views]]:
        """The day by value, whether or not its rotation is under way. One atomic step."""
        return READ(on, keys=self._both([day]), args=[*self._member_names(on.layout), int(day)],
                    decode=lambda reply: self._views(day, reply[0]))

    def read_range(self, on: ScriptRunner, first: int, last: int) -> Awaitable[dict[int, dict[str, Views]]]:
        """``read`` of the days from ``first`` to ``last``, both included, at most 31, in one atomic step."""
        days = self.checked_range(first, last, _LONGEST_RANGE)
        return READ(on, keys=self._both(days), args=[*self._member_names(on.layout), *days],
                    decode=lambda reply: {day: self._views(day, one) for day, one in zip(days, reply, strict=True)})

    def all_time(self, on: ScriptRunner, *, before: int) -> Awaitable[AllTimeViews]:
        """Views by value over all days before ``before``: those that were rotated, those that were not, and late ones.

        Rotated days are always in, so ``before`` should not lie before the earliest. One atomic step.
        """
        day_names = [*around(self.day_key, "unix_date", {}, on.layout),
                     *around(self.aside_key, "unix_date", {}, on.layout)[1:]]
        keys: list[KeyReference] = [self.views_key.at(), self.late_key.at(), self.late_aside_key.at(),
                                    *(key.at() for key in (self.users_key,) if key is not None), *self._earliest()]
        arguments: list[Argument] = [self.checked_day(before), int(self.users_key is not None), *day_names,
                                     *self._member_names(on.layout)]
        return ALL_TIME(on, keys=keys, args=arguments, decode=self._all_time)

    def _all_time(self, reply: Reply) -> AllTimeViews:
        views, users = (dict(zip((raw.decode() for raw in flat[::2]), flat[1::2], strict=True)) for flat in reply)
        return AllTimeViews(views, users if self.users_key is not None else None)

    def _views(self, day: int, flat: Reply) -> dict[str, Views]:
        key, found = self.day_key.at(day), dict[str, Views]()
        for raw, amount, users in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            ((value, views),) = key._values({raw: amount}).items()
            before = found.get(value, Views(0, 0))  # only a program that knows no rotation writes beside it
            found[value] = Views(before.views + views, users)
        return found

    def _both(self, days: "list[int] | range") -> list[KeyReference]:
        return [key.at(day) for day in days for key in (self.day_key, self.aside_key)]

    def _member_names(self, layout: Layout) -> list[str]:
        """What stands before, between and after value and day in the names of the sets of members."""
        return pieces(self.members_key, (self.dimension, "unix_date"), {}, layout)

    # -- rotation ---------------------------------------------------------------------------------------------------

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[str | None]:
        """Put the earliest day aside and return the id of its rotation, an older one if it was begun before.

        None when the day is not the earliest, or another is under way. Views of the day are late from now on; ``read``
        gives what was put aside. One atomic step, safe to repeat.
        """
        keys = [self.state_key.at(), self.day_key.at(day), self.aside_key.at(day), *self._earliest()]
        return BEGIN(on, keys=keys, args=[int(day), rotation_id], decode=text_or_none)

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[bool]:
        """Add the day to the totals of all time and forget it; says whether this rotation was under way.

        One atomic step: a repeat adds nothing.
        """
        totals = [self.views_key.at(), *(key.at() for key in (self.users_key,) if key is not None)]
        keys = [self.state_key.at(), self.aside_key.at(day), *totals, *self._earliest()]
        head, middle, tail = self._member_names(on.layout)
        with_users, tail = int(self.users_key is not None), f"{middle}{day}{tail}"
        return END(on, keys=keys, args=[int(day), rotation_id, with_users, head, tail], decode=bool)

    def rotation_state(self, on: Executor) -> Awaitable[RotationState | None]:
        """How far days were rotated, and what is under way."""
        return self.state_key.at().get(on)

    def late(self, on: Executor) -> Awaitable[dict[tuple[int, str], int]]:
        """How many views came too late and are not stored yet, by day and value."""
        return self._late.all(on)

    def begin_late(self, on: ScriptRunner, late_id: str) -> Awaitable[tuple[str, dict[tuple[int, str], int]] | None]:
        """Put late views aside: the id under which they lie, an older one if that was begun before, and how many by day
        and value. None when none came late. Store them with the id, then ``end_late``. One atomic step, safe to repeat.
        """
        return self._late.begin(on, late_id)

    def end_late(self, on: ScriptRunner, late_id: str) -> Awaitable[bool]:
        """Add the late views of this id to the totals of all time and forget them; says whether they were there."""
        return END_LATE(on, keys=[self.state_key.at(), self.late_aside_key.at(), self.views_key.at()],
                        args=[late_id], decode=bool)

    def _late_field(self, field: str) -> tuple[int, str]:
        day, _, value = field.partition(":")
        if not day.isdigit() or not value:
            raise Corrupt(f"{self.late_key.pattern}: field {field[:60]!r} is not a day and a value",
                          key=self.late_aside_key.at().logical, declaration=self.late_key.pattern)
        return int(day), value
