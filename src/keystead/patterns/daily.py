"""Statistics by day: a hash of counts for each day, a hash of values for each event that has a breakdown.

::

    EVENTS = DailyFamily(SMS, "sms_events", counts=("found",), breakdowns={"failed": "status"}, held_days=2,
                         zone="America/Los_Angeles", table="sms_event_stats")
    await EVENTS.tally().incr("found", at=now).incr("failed", "undelivered", at=now).store(valkey)

declares ``stats:sms_events:daily:{unix_date}``, ``...:extra:{event}``, ``stats:sms_events:daily:earliest``, and what
rotation needs: the first two with ``:rotating``, ``stats:sms_events:daily:rotation``, ``stats:sms_events:daily:late``
and ``...:late:dead``.
"""

import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Unpack
from zoneinfo import ZoneInfo

import msgspec

from keystead import dates
from keystead.dates import UnixDate
from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import (
    NO_TTL,
    Executor,
    IntegerKey,
    KeyReference,
    Keyspace,
    Layout,
    ListKey,
    MapKey,
    MapRef,
    NoneUntilEnded,
    OneOf,
    RecordKey,
    Reply,
    Ttl,
)
from keystead.patterns.cache import Cache
from keystead.patterns.daily_chart import days_cache
from keystead.patterns.daily_identities import Identity
from keystead.patterns.daily_tally import Collector, Stored, Tally
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.rotation import SCRIPTS, Rotation, RotationState, time_of_day
from keystead.patterns.rotation_late import BURIES, LateList
from keystead.patterns.worklist_items import DeadLetterCodec

END_DAY: Final = Script("keystead.patterns", "scripts/daily/end_day.lua")
CANONICAL: Final = None  # the zone of a family whose callers name the calendar day themselves
OTHER: Final = "other"
MOST_BREAKDOWN_FIELDS: Final = 1000
_DAYS_REMEMBERED = 8
_LONGEST_BREAKDOWN = 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_SKEW_SECONDS = 60.0  # by so much may the clocks of two hosts differ
_FIRST_ZONE_SECONDS = 14 * 3600.0 + _SKEW_SECONDS
_LATEST_AT = 99_999 * 86400.0  # in the year 2243; beyond it someone has counted in other units
_UTC = ZoneInfo("UTC")


class LateCount(msgspec.Struct, frozen=True):
    """A count that came after its day was rotated. ``id`` is its own, so that it is applied once."""

    id: str
    unix_date: int
    event: str
    amount: int
    breakdown: str | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """A late count as it lies in its list."""

    count: LateCount
    raw: bytes


@dataclass(frozen=True, slots=True)
class Day:
    """What was counted on one day; every declared event is there. ``rotating`` days are on their way to SQL."""

    unix_date: UnixDate
    counts: Mapping[str, int]
    breakdowns: Mapping[str, Mapping[str, int]]
    rotating: bool = False

    def inconsistencies(self) -> list[str]:
        """Events whose count is not the sum of their breakdown; there are none unless someone wrote around us."""
        return [event for event, fields in self.breakdowns.items() if self.counts[event] != sum(fields.values())]


class DailyFamily:
    """Counts by day that belong together. ``counts`` have no breakdown, ``breakdowns`` say what theirs is.

    ``zone`` decides which day an instant falls on; a ``CANONICAL`` family is told the day. Today and
    ``held_days - 1`` days before stay here. A family without a table says with ``kept_seconds`` how long a day stays
    after ``end_day``. Keys begin with ``stats:{name}:daily`` unless ``days`` says otherwise.

    For whoever rotates and shows them: ``table``; ``rotates_at``, a time of day in the zone (of a canonical family, in
    ``home``); ``channel``, which carries whole days to all processes, ``ps:stats:{name}:daily`` unless given, and
    ``chart``, what such an answer is called; ``identities`` that hold when a day is over, as ``"sent + lost = tried"``;
    ``sparse``, breakdowns of which most days have few; ``gauges``, further columns that are read when a day is
    rotated; ``columns``, for events ``a:b``, that are rows of two columns instead of one column for each event.
    """

    def __init__(
        self, keyspace: Keyspace, name: str, *, counts: Sequence[str] = (), breakdowns: Mapping[str, str] | None = None,
        held_days: int, zone: str | None, table: str | None = None, channel: str | None = "", days: str = "",
        kept_seconds: float | None = None, rotates_at: str = "02:00", home: str = "UTC", chart: str = "",
        identities: Sequence[str] = (), sparse: Sequence[str] = (), gauges: Sequence[str] = (),
        columns: Sequence[str] = (), most_breakdown_fields: int = MOST_BREAKDOWN_FIELDS, **facts: Unpack[PatternFacts],
    ) -> None:
        self.name, self.purpose = name, facts["purpose"]
        self.plain = tuple(counts)
        self.breakdowns = dict(breakdowns or {})
        self.events = (*self.plain, *self.breakdowns)
        self.held_days, self.table, self.kept_seconds = held_days, table, kept_seconds
        self.zone = None if zone is None else ZoneInfo(zone)
        self.home = self.zone or ZoneInfo(home)
        self.most_breakdown_fields = most_breakdown_fields
        self.days = days or f"stats:{name}:daily"
        self.rotates_at = time_of_day(name, rotates_at)
        self.sparse, self.gauges, self.columns = frozenset(sparse), tuple(gauges), tuple(columns)
        self.identities = tuple(Identity.parse(name, text, self.events) for text in identities)
        self._check()
        self.channel = channel if channel != "" else f"ps:stats:{name}:daily" if table is not None else None
        self.charts: Cache[bytes] | None = None
        if self.channel is not None:
            self.charts = days_cache(keyspace, chart or f"daily_{name}", self.channel, self.home, held_days, facts)
        self._plain_events = frozenset(self.plain)
        self._declare(keyspace, facts)
        self._names: dict[tuple[int, Layout], tuple[bytes, dict[str, bytes]]] = {}
        self._fixed: dict[Layout, tuple[bytes, bytes, bytes]] = {}
        self.rotation = Rotation(self.earliest_key.at(), self.state_key.at())
        self._late = LateList(self.late_key.at(), self.late_dead_key.at())

    def _declare(self, keyspace: Keyspace, facts: PatternFacts) -> None:
        day, scripts = self.days, ("daily/store.lua", "daily/end_day.lua", *SCRIPTS)
        self.earliest_key = IntegerKey(
            keyspace, f"{day}:earliest", **told(facts, "first day that may still be here", scripts=scripts)
        )
        self.state_key = RecordKey(
            keyspace, f"{day}:rotation", RotationState, **told(facts, "how far days were rotated", scripts=scripts)
        )
        self.late_dead_key = ListKey(keyspace, f"{day}:late:dead", DeadLetterCodec(), **told(
            facts, "late counts that do not decode, newest right", scripts=BURIES
        ))
        self.late_key = ListKey(keyspace, f"{day}:late", LateCount, **told(
            facts, "counts for days that were rotated", scripts=(*scripts, *BURIES),
            dead=self.late_dead_key,
        ))
        self.day_keys: list[MapKey[int]] = []
        self.extra_keys: list[MapKey[int]] = []
        kept: Ttl = NO_TTL if self.kept_seconds is None else NoneUntilEnded(self.kept_seconds)
        for ending, what, ttl in (("", "", kept), (":rotating", "put aside while it is rotated", NO_TTL)):
            said = told(facts, what, scripts=scripts, ttl=ttl)
            self.day_keys.append(MapKey(keyspace, f"{day}:{{unix_date}}{ending}", int, fields=self.events, **said))
            if self.breakdowns:
                said = told(facts, f"one event by value{what and ', ' + what}", scripts=scripts, ttl=ttl)
                said["kinds"] = {"event": OneOf(*self.breakdowns)}
                self.extra_keys.append(MapKey(keyspace, f"{day}:{{unix_date}}:extra:{{event}}{ending}", int, **said))

    # -- counting ---------------------------------------------------------------------------------------------------

    def tally(self, now: float | None = None) -> Tally:
        """An empty tally, to be filled and stored. With ``now`` it refuses days that have not begun."""
        return Tally(self, now)

    def incr(
        self, on: ScriptRunner, event: str, breakdown: str | None = None, amount: int = 1, *, at: float | None = None,
        unix_date: int | None = None,
    ) -> Awaitable[Stored]:
        """Count one event; see ``Tally.incr`` and ``Tally.store``."""
        return self.tally().incr(event, breakdown, amount, at=at, unix_date=unix_date).store(on)

    def collector(self, on: ScriptRunner) -> Collector:
        """Stores the tallies of many tasks together."""
        return Collector(self, on)

    def day_of(self, at: float) -> UnixDate:
        """The day that the instant falls on in the family's zone."""
        if self.zone is None:
            raise DeclarationError(f"{self.name} counts canonical days: give unix_date, not an instant")
        if not 0 <= at < _LATEST_AT:
            raise DeclarationError(f"{self.name}: an instant is a unix time in seconds, got {at!r}")
        return dates.unix_date(at, self.zone)

    def last_day(self, now: float) -> UnixDate:
        """The newest day that something can have happened on; a canonical day begins first at UTC+14."""
        return self.day_of(now + _SKEW_SECONDS) if self.zone else dates.unix_date(now + _FIRST_ZONE_SECONDS, _UTC)

    # -- reading ----------------------------------------------------------------------------------------------------

    def earliest(self, on: Executor) -> Awaitable[int | None]:
        """The first day that may still be here; days before it are in SQL. None if nothing was ever counted."""
        return self.earliest_key.at().get(on)

    def read(self, on: Executor, day: int) -> Awaitable[Day]:
        """One day, counted to the moment, whether or not its rotation is under way. One atomic step."""
        return on.run_block(self._reads([day], on.layout), lambda replies: self._day(day, replies), repeat=True)

    def read_range(self, on: Executor, first: int, last: int) -> Awaitable[list[Day]]:
        """The days from ``first`` to ``last``, both included, as of one moment; days without counts are all zero."""
        days = range(first, last + 1)
        if not 1 <= len(days) <= 366:
            raise DeclarationError(f"{self.name}: a range has one to 366 days, got {first} to {last}")
        each = len(self._reads([first], on.layout))
        return on.run_block(
            self._reads(days, on.layout),
            lambda replies: [self._day(day, replies[n * each : n * each + each]) for n, day in enumerate(days)],
            repeat=True,
        )

    def _references(self, day: int) -> list[MapRef[int]]:
        """The day's counts and breakdowns, then the same put aside."""
        found = []
        for place, key in enumerate(self.day_keys):
            found.append(key.at(day))
            found += [self.extra_keys[place].at(day, event) for event in self.breakdowns]
        return found

    def _reads(self, days: Sequence[int], layout: Layout) -> list[tuple[str, bytes]]:
        return [("HGETALL", reference.name(layout)) for day in days for reference in self._references(day)]

    def _day(self, day: int, replies: Sequence[Reply]) -> Day:
        counts = dict.fromkeys(self.events, 0)
        breakdowns: dict[str, dict[str, int]] = {event: {} for event in self.breakdowns}
        places = [None, *self.breakdowns] * 2
        rotating = any(replies[len(replies) // 2 :])
        for event, reference, reply in zip(places, self._references(day), replies, strict=True):
            target = counts if event is None else breakdowns[event]
            for field, amount in reference._values(reply).items():
                target[field] = target.get(field, 0) + amount
        return Day(UnixDate(day), counts, breakdowns, rotating)

    # -- rotation ---------------------------------------------------------------------------------------------------

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[str | None]:
        """Put the earliest day aside and return the id of its rotation; from now on counts for it are late.

        If the rotation of this day was begun before and not ended, that one's id is returned: go on with it. None when
        the day is not the earliest, or the rotation of another day is under way. One atomic step, safe to repeat.
        """
        references = self._references(day)
        half = len(references) // 2
        return self.rotation.begin(on, day, rotation_id, list(zip(references[:half], references[half:], strict=True)))

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[bool]:
        """Forget the day that was put aside, once it is stored; says whether this rotation was under way."""
        references: list[KeyReference] = list(self._references(day))
        return self.rotation.end(on, day, rotation_id, references[len(references) // 2 :])

    def end_day(self, on: ScriptRunner, day: int) -> Awaitable[bool]:
        """Let the earliest day expire, for a family without a table; says whether it was the earliest.

        A count that still comes for the day joins it, and makes it the earliest again.
        """
        if self.kept_seconds is None:
            raise DeclarationError(f"{self.name}: days are rotated, not ended: it declares no kept_seconds")
        references = self._references(day)
        keys = [self.earliest_key.at(), *references[: len(references) // 2]]
        return END_DAY(on, keys=keys, args=[int(day), round(self.kept_seconds * 1000)], decode=bool)

    def rotation_state(self, on: Executor) -> Awaitable[RotationState | None]:
        """How far days were rotated, and what is under way."""
        return self.rotation.state(on)

    async def late(self, on: ScriptRunner, most: int = 1000, *, now: float) -> list[Late]:
        """The oldest late counts. They stay until ``finish_late``. Takes a connection, not a pipeline.

        What does not decode becomes a dead letter of the time ``now``, and does not stop the others.
        """
        return [Late(item.value, item.raw) for item in await self._late.oldest(on, most, now)]

    def finish_late(self, on: Executor, done: Sequence[Late]) -> Awaitable[int]:
        """Remove exactly these late counts, after they were stored; says how many were still there."""
        return self._late.finish(on, (each.raw for each in done))

    # -- checks -----------------------------------------------------------------------------------------------------

    def check_event(self, event: str, breakdown: str | None) -> None:
        """Refuse an event that is not declared, or one with a breakdown missing or too many."""
        if event in self._plain_events:
            if breakdown is not None:
                raise DeclarationError(f"{self.name}: {event} is declared without a breakdown")
        elif event not in self.breakdowns:
            raise DeclarationError(f"{self.name}: there is no event {event[:60]!r}; declared: {', '.join(self.events)}")
        elif not breakdown:
            raise DeclarationError(f"{self.name}: {event} needs its breakdown, the {self.breakdowns[event]}")
        elif len(breakdown) > _LONGEST_BREAKDOWN:
            raise DeclarationError(f"{self.name}: a breakdown of {event} has more than {_LONGEST_BREAKDOWN} characters")
        elif not breakdown.isascii() and _SURROGATE.search(breakdown):  # here, since it would stop all stored with it
            raise DeclarationError(f"{self.name}: a breakdown of {event} is not valid Unicode: {breakdown[:60]!r}")

    def check_day(self, unix_date: int | None, at: float | None) -> int:
        if unix_date is None or at is not None:
            raise DeclarationError(f"{self.name}: say when: at= an instant, or unix_date= a day, and not both")
        if unix_date.__class__ is not int:
            raise DeclarationError(f"{self.name}: a day is a whole number, got {unix_date!r}")
        return unix_date

    def _check(self) -> None:
        if len(set(self.events)) < len(self.events) or not self.events:
            raise DeclarationError(f"{self.name}: a family needs events, each once, among counts and breakdowns")
        if self.kept_seconds is not None and self.table is not None:
            raise DeclarationError(f"{self.name}: a family has a table, or kept_seconds, not both")
        if not {*self.sparse} <= {*self.breakdowns} or (self.columns and (self.breakdowns or self.gauges or any(
            event.count(":") != len(self.columns) - 1 for event in self.plain
        ))):
            raise DeclarationError(f"{self.name}: sparse names breakdowns; columns fit events without any, as a:b")
        if self.held_days < 1 or not 1 <= self.most_breakdown_fields <= 1_000_000:
            raise DeclarationError(f"{self.name}: held_days and most_breakdown_fields must be at least 1")

    # -- names ------------------------------------------------------------------------------------------------------

    def fixed_names(self, layout: Layout) -> tuple[bytes, bytes, bytes]:
        """The physical names of earliest, rotation and late."""
        known = self._fixed.get(layout)
        if known is None:
            keys = (self.earliest_key.at(), self.state_key.at(), self.late_key.at())
            known = self._fixed[layout] = (keys[0].name(layout), keys[1].name(layout), keys[2].name(layout))
        return known

    def day_names(self, day: int, layout: Layout) -> tuple[bytes, dict[str, bytes]]:
        """The physical names of a day's counts, and of its breakdowns by event."""
        known = self._names.get((day, layout))
        if known is None:
            if len(self._names) >= _DAYS_REMEMBERED * layout.lanes:
                self._names.clear()
            extra = {event: self.extra_keys[0].at(day, event).name(layout) for event in self.breakdowns}
            known = self._names[day, layout] = self.day_keys[0].at(day).name(layout), extra
        return known
