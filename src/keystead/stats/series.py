"""Days of one family, side by side: what every chart is drawn from."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead import dates
from keystead.dates import UnixDate, UnixMonth
from keystead.errors import NotFound

CANONICAL: Final = "canonical"
OTHERS: Final = "others"


@dataclass(frozen=True, slots=True)
class Series:
    """Counts by day from ``start`` to before ``end``; every list is as long as ``labels``, and no day is missing.

    ``zone`` is the one whose calendar decides on days, ``canonical`` where each person's own does. Days from
    ``live_from`` on may still change by ordinary counting; an earlier one only if something is told late. A
    ``monthly`` series counts months: ``start``, ``end`` and ``live_from`` are unix months.
    """

    name: str
    zone: str
    start: int
    end: int
    labels: Sequence[str]
    counts: Mapping[str, Sequence[int]]
    breakdowns: Mapping[str, Mapping[str, Sequence[int]]]
    live_from: int
    monthly: bool = False

    @property
    def live(self) -> Sequence[str]:
        """The labels that may still change."""
        return self.labels[max(0, self.live_from - self.start) :]

    def total(self, event: str) -> int:
        """Over all days."""
        return sum(self._counts(event))

    def top(self, event: str, most: int = 8) -> dict[str, list[int]]:
        """The biggest values of an event, biggest first, and ``others``, the sum of the rest, if there is any.

        A value that is called so itself joins the rest. An event without a breakdown has no values.
        """
        self._counts(event)
        values = self.breakdowns.get(event, {})
        biggest = sorted((value for value in values if value != OTHERS), key=lambda value: (-sum(values[value]), value))
        shown = {value: list(values[value]) for value in biggest[:most]}
        rest = [values[value] for value in values if value not in shown]
        if rest:
            shown[OTHERS] = [sum(day) for day in zip(*rest, strict=True)]
        return shown

    def only(self, event: str) -> "Series":
        """The same days of one event."""
        kept = {event: self._counts(event)}
        broken = {event: self.breakdowns[event]} if event in self.breakdowns else {}
        return Series(self.name, self.zone, self.start, self.end, self.labels, kept, broken, self.live_from,
                      self.monthly)

    def as_dict(self) -> dict[str, Any]:
        """As programs get it."""
        return {
            "name": self.name, "zone": self.zone, "start_unix_date": self.start, "end_unix_date": self.end,
            "labels": list(self.labels), "live": list(self.live),
            "counts": {event: list(days) for event, days in self.counts.items()},
            "breakdowns": {event: {value: list(days) for value, days in values.items()}
                           for event, values in self.breakdowns.items()},
        }

    def csv(self) -> str:
        """A row for each day: its label, whether it is live, a column for each event and for each of its values."""
        columns = [(event, days) for event, days in self.counts.items()]
        columns += [(f"{event}[{value}]", days) for event, values in self.breakdowns.items()
                    for value, days in values.items()]
        first = "month" if self.monthly else "date"
        live_at = self.live_from - self.start
        return csv_text(
            [first, "live", *(name for name, _ in columns)],
            ([label, int(at >= live_at), *(days[at] for _, days in columns)] for at, label in enumerate(self.labels)),
        )

    def _counts(self, event: str) -> Sequence[int]:
        if event not in self.counts:
            raise NotFound(f"{self.name} has no event {event[:60]!r}; it has {', '.join(self.counts)}")
        return self.counts[event]


def day_labels(start: int, end: int) -> list[str]:
    """``YYYY-MM-DD`` of the days from ``start`` to before ``end``."""
    return [dates.unix_date_to_date(UnixDate(day)).isoformat() for day in range(start, end)]


def month_labels(start: int, end: int) -> list[str]:
    """``YYYY-MM`` of the months from ``start`` to before ``end``."""
    return [f"{dates.unix_month_to_date(UnixMonth(month)):%Y-%m}" for month in range(start, end)]


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a spreadsheet reads them. A text that a spreadsheet would take for a formula is shown as a text."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([_harmless(cell) for cell in head])
    writer.writerows(_cells(rows))
    return file.getvalue()


def _cells(rows: Iterable[Sequence[object]]) -> Iterator[list[object]]:
    for row in rows:
        yield [_harmless(cell) for cell in row]


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
