"""Counts by day for rows that nobody declared beforehand: a set of the day's rows, and a hash of counts for each.

::

    SALES = RowsByDay(SHOP, rows="stats:sales:{unix_date}:articles", counts="stats:sales:{article}:{unix_date}:counts",
                      earliest="stats:sales:earliest", fields=("sold", "returned"), zone="Europe/Berlin",
                      table="daily_sales", purpose="what was sold of each article")
    await SALES.add(valkey, [("chair", "sold", 1), ("table", "returned", 2)], at=now)

declares the keys that ``rows``, ``counts`` and ``earliest`` spell, and beside ``earliest``, for rotation, ``rotation``,
``late``, ``late:dead``; the set of rows also with ``:unverified`` (how many of them are) and ``:rotating``.
"""

import secrets
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Unpack

import msgspec

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import Executor, IntegerKey, KeyReference, Keyspace, ListKey, MapKey, RecordKey, Reply, SetKey
from keystead.keys.executor import Argument
from keystead.keys.keyspace import Facts
from keystead.patterns.by_day import ByDay, Known, name_of
from keystead.patterns.derived import around
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.rotation import SCRIPTS, Rotation, RotationState
from keystead.patterns.rotation_late import BURIES, LateList
from keystead.patterns.worklist_items import DeadLetterCodec
from keystead.telemetry import counts

ADD: Final = Script("keystead.patterns", "scripts/rows_by_day/add.lua")
ADD_ONCE: Final = Script("keystead.patterns", "scripts/rows_by_day/add_once.lua")
PAGE: Final = Script("keystead.patterns", "scripts/rows_by_day/page.lua")
READ_ASIDE: Final = Script("keystead.patterns", "scripts/rows_by_day/read_aside.lua")
FINISH: Final = Script("keystead.patterns", "scripts/rows_by_day/finish_rows.lua")
END: Final = Script("keystead.patterns", "scripts/rows_by_day/end_rotation.lua")
_ADDS, _BEGINS = ("rows_by_day/add.lua", "rows_by_day/add_once.lua"), SCRIPTS[:1]
_ASIDE = ("rows_by_day/read_aside.lua", "rows_by_day/finish_rows.lua", "rows_by_day/end_rotation.lua")
_MOST_AMOUNT = 10**12
_MOST_CHANGES = 1000
_LONGEST_ROW = 16_384
_PAGE = 200

counts.describe("rows_late", "changes of rows that came after their day was rotated, by family")
counts.describe("rows_overflow", "rows counted as other, because the day had too many new ones, by family")

Change = tuple[str, str, int]  # row, field, amount


class LateChange(msgspec.Struct, frozen=True):
    """A change that came after its day was rotated. ``id`` is its own, so that it is applied once."""

    id: str
    unix_date: int
    row: str
    field: str
    amount: int


@dataclass(frozen=True, slots=True)
class LateRow:
    """A late change as it lies in its list."""

    change: LateChange
    raw: bytes


@dataclass(frozen=True, slots=True)
class RowsAdded:
    """What adding led to: changes that were late, and rows that became ``other``."""

    late: int = 0
    overflow: int = 0


class RowsByDay(ByDay):
    """Counts by day and row. ``fields`` are the counts of a row; they may be below zero.

    A day takes at most ``most_rows`` that are not verified; what more come are counted in the row ``other``.
    """

    def __init__(
        self, keyspace: Keyspace, *, rows: str, counts: str, earliest: str, fields: Sequence[str], zone: str | None,
        table: str | None = None, held_days: int = 1, rotates_at: str = "02:00", most_rows: int = 2000,
        other: str = "other", name: str | None = None, **facts: Unpack[PatternFacts],
    ) -> None:
        beside = earliest.removesuffix(":earliest")
        super().__init__(
            name_of(beside).removesuffix(":daily") if name is None else name, zone=zone, table=table,
            held_days=held_days, rotates_at=rotates_at, purpose=facts["purpose"],
        )
        if not fields or len(set(fields)) < len(fields):
            raise DeclarationError(f"{self.name}: a row needs fields, each once")
        if not 1 <= most_rows <= 1_000_000:
            raise DeclarationError(f"{self.name}: most_rows lies between 1 and 1,000,000, got {most_rows}")
        self.fields, self.most_rows, self.other = tuple(fields), most_rows, other
        self._known_fields = frozenset(fields)
        self._declare(keyspace, rows, counts, earliest, beside, facts)
        variables = [name for name in self.counts_key.template.names if name != "unix_date"]
        if len(variables) != 1 or self.rows_key.template.names != ("unix_date",):
            raise DeclarationError(f"{counts}: counts are by unix_date and one variable more, rows by unix_date alone")
        (self.row_variable,) = variables
        self._checked_row(other)
        self.rotation = Rotation(self.earliest_key.at(), self.state_key.at())
        self._late = LateList(self.late_key.at(), self.late_dead_key.at())

    def _declare(
        self, keyspace: Keyspace, rows: str, counts: str, earliest: str, beside: str, facts: PatternFacts
    ) -> None:
        def of(what: str, *scripts: str, personal: bool = False) -> Facts:
            return {**told(facts, what, scripts=scripts, personal=personal), "kinds": None}

        self.earliest_key = IntegerKey(
            keyspace, earliest, **of("first day that may still be here", *_ADDS, *_BEGINS, *_ASIDE[2:])
        )
        self.state_key = RecordKey(
            keyspace, f"{beside}:rotation", RotationState, **of("how far it was rotated", *_ADDS, *_BEGINS, *_ASIDE)
        )
        self.late_dead_key = ListKey(keyspace, f"{beside}:late:dead", DeadLetterCodec(), **told(
            facts, "late changes that do not decode, newest right", scripts=BURIES
        ))
        self.late_key = ListKey(keyspace, f"{beside}:late", LateChange, **told(
            facts, "changes for days that were rotated", scripts=(*_ADDS, *BURIES),
            dead=self.late_dead_key,
        ))
        self.rows_key = SetKey(
            keyspace, rows, str, member="row", **of("rows of the day", *_ADDS, *_BEGINS, "rows_by_day/page.lua",
                                                    personal=True)
        )
        self.aside_key = SetKey(
            keyspace, f"{rows}:rotating", str, member="row",
            **of("rows that are still to be rotated", *_BEGINS, *_ASIDE, "rows_by_day/page.lua", personal=True),
        )
        self.unverified_key = IntegerKey(
            keyspace, f"{rows}:unverified", **of("how many rows came that are not verified", *_ADDS, *_ASIDE[2:])
        )
        self.counts_key = MapKey(keyspace, counts, int, fields=self.fields, **told(
            facts, scripts=(*_ADDS, *_ASIDE[:2], "rows_by_day/page.lua")
        ))

    # -- counting ---------------------------------------------------------------------------------------------------

    def add(
        self, on: ScriptRunner, changes: Sequence[Change], *, at: float | None = None, day: int | None = None,
        verified: Collection[str] = (), today: int | None = None,
    ) -> Awaitable[RowsAdded]:
        """Add every (row, field, amount) to the day of ``at``, or to ``day``, in one atomic step.

        Amounts may be below zero. Rows in ``verified`` are counted under their own name however many there are. After
        the day was rotated the changes go to the list of late ones. With ``today`` a day in the future is refused.
        """
        chosen = self.chosen_day(at, day, today)
        merged = self._merged(changes)
        if not merged:
            return Known(RowsAdded())
        return ADD(on, keys=self._adding(merged, chosen), args=self._amounts(merged, chosen, verified),
                   decode=self._added)

    def add_once(
        self, on: ScriptRunner, done: KeyReference, changes: Sequence[Change], *, held_seconds: float, day: int,
        verified: Collection[str] = (),
    ) -> Awaitable[RowsAdded | None]:
        """As ``add``, unless the mark ``done`` is there: then nothing happens, and None is the answer. Sets the mark.

        The mark is a key of the same tag, and holds for ``held_seconds``: so long a repeat has no effect.
        """
        chosen = self.checked_day(day)
        merged = self._merged(changes)
        if not merged:
            return Known(RowsAdded())
        return ADD_ONCE(
            on, keys=[done, *self._adding(merged, chosen)],
            args=[*self._amounts(merged, chosen, verified), round(held_seconds * 1000)],
            decode=lambda reply: None if reply is None else self._added(reply),
        )

    def _adding(self, merged: Mapping[str, object], day: int) -> list[KeyReference]:
        return [
            self.earliest_key.at(), self.state_key.at(), self.late_key.at(), self.rows_key.at(day),
            self.unverified_key.at(day), *(self._counts(row, day) for row in (self.other, *merged)),
        ]

    def _amounts(
        self, merged: Mapping[str, Mapping[str, int]], day: int, verified: Collection[str]
    ) -> list[Argument]:
        amounts = [(row, row in verified, list(fields.items())) for row, fields in merged.items()]
        return [day, secrets.token_urlsafe(9), self.most_rows, self.other, msgspec.msgpack.encode(amounts)]

    def _merged(self, changes: Sequence[Change]) -> dict[str, dict[str, int]]:
        if len(changes) > _MOST_CHANGES:
            raise DeclarationError(f"{self.name}: at most {_MOST_CHANGES} changes at once, got {len(changes)}")
        merged: dict[str, dict[str, int]] = {}
        for row, field, amount in changes:
            if field not in self._known_fields:
                known = ", ".join(self.fields)
                raise DeclarationError(f"{self.name}: there is no field {field[:60]!r}; declared: {known}")
            if amount.__class__ is not int or not -_MOST_AMOUNT <= amount <= _MOST_AMOUNT:
                raise DeclarationError(f"{self.name}: an amount is a whole number up to {_MOST_AMOUNT}, got {amount!r}")
            if amount:
                fields = merged.setdefault(self._checked_row(row), {})
                fields[field] = fields.get(field, 0) + amount
        return merged

    def _added(self, reply: Reply) -> RowsAdded:
        late, overflow = reply
        if late:
            counts.add("rows_late", late, family=self.name)
        if overflow:
            counts.add("rows_overflow", overflow, family=self.name)
        return RowsAdded(late, overflow)

    def _checked_row(self, row: str) -> str:
        if not row or len(row) > _LONGEST_ROW:
            raise DeclarationError(f"{self.name}: a row is named by 1 to {_LONGEST_ROW} characters, got {len(row)}")
        return row

    def _counts(self, row: str, day: int) -> KeyReference:
        return self.counts_key.at(**{self.row_variable: row}, unix_date=day)

    # -- reading ----------------------------------------------------------------------------------------------------

    def earliest(self, on: Executor) -> Awaitable[int | None]:
        """The first day that may still be here; None if nothing was ever counted."""
        return self.earliest_key.at().get(on)

    async def read(self, on: ScriptRunner, day: int) -> dict[str, dict[str, int]]:
        """The rows of the day that are here, with every field. Read in pages over a connection.

        While the day is rotated, rows that were finished are not here any more.
        """
        found: dict[str, dict[str, int]] = {}
        for key in (self.rows_key, self.aside_key):
            cursor = "0"
            while True:
                cursor, page = await PAGE(
                    on, keys=[key.at(day)], args=[cursor, _PAGE, *self._around(on, day)],
                    decode=lambda reply: (reply[0].decode(), self._rows(day, reply[1])),
                )
                found.update(page)
                if cursor == "0":
                    break
        return found

    def _around(self, on: Executor, day: int) -> tuple[str, str]:
        return around(self.counts_key, self.row_variable, {"unix_date": str(self.checked_day(day))}, on.layout)

    def _rows(self, day: int, reply: Reply) -> dict[str, dict[str, int]]:
        rows: dict[str, dict[str, int]] = {}
        key = self.rows_key.at(day)
        for raw, flat in zip(reply[::2], reply[1::2], strict=True):
            row = key._decoded(self.rows_key.codec, raw)
            try:
                counted = self.counts_key.at(**{self.row_variable: row}, unix_date=day)
            except DeclarationError as error:  # we never put it there, so it is what lies there that is wrong
                raise Corrupt(f"{key.logical} holds a row that can have no counts: {error}", key=key.logical,
                              declaration=self.rows_key.pattern) from None
            values: Mapping[str, int] = counted._values(flat)
            rows[row] = {**dict.fromkeys(self.fields, 0), **values}
        return rows

    # -- rotation ---------------------------------------------------------------------------------------------------

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[str | None]:
        """Close the earliest day and return the id of its rotation, an older one if it was begun before.

        None when the day is not the earliest, or another is under way. Changes for the day are late from now on. Costs
        the same however many rows there are; safe to repeat.
        """
        return self.rotation.begin(on, day, rotation_id, [(self.rows_key.at(day), self.aside_key.at(day))])

    def read_aside(
        self, on: ScriptRunner, day: int, rotation_id: str, most: int = 100
    ) -> Awaitable[dict[str, dict[str, int]] | None]:
        """Some rows of the day that are still to be stored, with every field; empty when all are finished.

        None when this rotation is not under way. Store each row under the rotation's id and its own name, so that one
        that is seen again after a crash changes nothing; then ``finish_rows``.
        """
        return READ_ASIDE(
            on, keys=[self.state_key.at(), self.aside_key.at(day)],
            args=[int(day), rotation_id, most, *self._around(on, day)],
            decode=lambda reply: None if reply is None else self._rows(day, reply),
        )

    def finish_rows(self, on: ScriptRunner, day: int, rotation_id: str, rows: Collection[str]) -> Awaitable[int]:
        """Forget these rows of the day, once they are stored; says how many were still there."""
        if not rows:
            return Known(0)
        keys = [self.state_key.at(), self.aside_key.at(day), *(self._counts(row, day) for row in rows)]
        return FINISH(on, keys=keys, args=[int(day), rotation_id, *rows], decode=int)

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str) -> Awaitable[bool]:
        """Make the next day the earliest. False when this rotation is not under way, or rows are left to be stored."""
        keys = [self.earliest_key.at(), self.state_key.at(), self.aside_key.at(day), self.unverified_key.at(day)]
        return END(on, keys=keys, args=[int(day), rotation_id], decode=bool)

    def rotation_state(self, on: Executor) -> Awaitable[RotationState | None]:
        """How far days were rotated, and what is under way."""
        return self.rotation.state(on)

    async def late(self, on: ScriptRunner, most: int = 1000, *, now: float) -> list[LateRow]:
        """The oldest late changes. They stay until ``finish_late``. Takes a connection, not a pipeline.

        What does not decode becomes a dead letter of the time ``now``, and does not stop the others.
        """
        return [LateRow(item.value, item.raw) for item in await self._late.oldest(on, most, now)]

    def finish_late(self, on: Executor, done: Sequence[LateRow]) -> Awaitable[int]:
        """Remove exactly these late changes, after they were stored; says how many were still there."""
        return self._late.finish(on, (each.raw for each in done))
