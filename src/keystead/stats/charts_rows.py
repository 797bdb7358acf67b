"""The rows of one day, wherever each of them is while the day is rotated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.patterns import RowsByDay
from keystead.stats.charts_border import Sources
from keystead.stats.charts_calendar import check_range, labels_of, today_of, zone_name
from keystead.stats.rotation_rows import digest
from keystead.stats.series import csv_text

MOST_LATE: Final = 1000


@dataclass(frozen=True, slots=True)
class DayRows:
    """Rows of one day with their counts, by the first of them descending. ``live``: it may still change."""

    name: str
    zone: str
    unix_date: int
    label: str
    row_name: str
    fields: Sequence[str]
    rows: Sequence[tuple[str, Mapping[str, int]]]
    live: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "zone": self.zone, "unix_date": self.unix_date, "label": self.label, "live": self.live,
            "fields": list(self.fields), "rows": [{self.row_name: row, **counts} for row, counts in self.rows],
        }

    def csv(self) -> str:
        rows = [[self.label, row, *(counts[field] for field in self.fields)] for row, counts in self.rows]
        return csv_text(["date", self.row_name, *self.fields], rows)


class RowsReader:
    """Reads one day of anything that has rows."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    async def read(self, rows: RowsByDay, day: int) -> DayRows:
        """Every row of the day, with what came late. Read in pages, so it is not one moment; but no row is missed or
        counted twice: rows leave the server one by one, each after SQL has it under an id of its own.
        """
        now = self._sources.clock.now()
        check_range(rows, day, day + 1, now)
        valkey, label = self._sources.valkey, labels_of(rows, day, day + 1)[0]
        late = [one.change for one in await rows.late(valkey, MOST_LATE, now=now) if one.change.unix_date == day]
        held = await rows.read(valkey, day)
        state = await rows.rotation_state(valkey)  # after the rows: a rotation that began later took none of them
        rotated = state is not None and day < state.rotated_to
        under_way = state.id if state is not None and state.unix_date == day else None
        begun = {f"{head}:{digest(row)}": row for head in (under_way, label) if under_way for row in held}
        ids = [*begun, *(change.id for change in late)]
        columns = (rows.row_variable, f"{rows.row_variable}_digest", *rows.fields)
        applied, stored = await self._sources.stored(rows, columns, day, day + 1 if rotated else day, ids)
        sums: dict[str, dict[str, int]] = {}
        names: dict[str, str] = {}

        def add(row: str, key: str, counts: Mapping[str, int]) -> None:
            fields = sums.setdefault(key, dict.fromkeys(rows.fields, 0))
            names.setdefault(key, row)
            for field, amount in counts.items():
                if field in fields:
                    fields[field] += amount

        for _, row, key, *amounts in stored:
            add(row, key, dict(zip(rows.fields, amounts, strict=True)))
        if not rotated or under_way is not None:
            in_sql = {begun[each] for each in applied & begun.keys()}
            for row, counts in held.items():
                if row not in in_sql:
                    add(row, digest(row), counts)
        for change in late:
            if change.id not in applied:
                add(change.row, digest(change.row), {change.field: change.amount})
        first = rows.fields[0]
        in_order = sorted(sums, key=lambda key: (-sums[key][first], names[key]))
        live = not rotated or day > today_of(rows, now) - rows.held_days
        return DayRows(
            rows.name, zone_name(rows), day, label, rows.row_variable, rows.fields,
            [(names[key], sums[key]) for key in in_order], live,
        )
