"""Which days the pages on statistics show: the last so many, or from one day to another. It stands in the address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from html import escape
from typing import Final
from urllib.parse import urlencode

from keystead import dates
from keystead.dates import UnixDate
from keystead.stats import Charted
from keystead.stats.charts_calendar import MOST_DAYS, is_monthly, last_of

USUAL_DAYS: Final = 30
CHOICES: Final = (7, 30, 90, 182)


@dataclass(frozen=True, slots=True)
class StatsRange:
    """The last ``days`` days; or, if ``first`` is given, the days from ``first`` to ``last``, both included.

    ``problem`` says in words why what the address asked for is not shown.
    """

    days: int = USUAL_DAYS
    first: date | None = None
    last: date | None = None
    problem: str = ""

    @classmethod
    def parse(cls, days: str = "", first: str = "", last: str = "") -> "StatsRange":
        """Read the address. What makes no sense is the usual range, and a problem."""
        if not (first or last):
            return cls._of_days(days)
        try:
            begins, ends = date.fromisoformat(first), date.fromisoformat(last)
        except ValueError:
            return cls(problem="From and to are two days, each written as 2026-03-01.")
        if ends < begins:
            return cls(problem="From lies after to.")
        if begins < date(1970, 1, 1) or (ends - begins).days + 1 > MOST_DAYS:
            return cls(problem=f"At most {MOST_DAYS:,} days are shown at once, from 1970 on.")
        return cls((ends - begins).days + 1, begins, ends)

    @classmethod
    def _of_days(cls, days: str) -> "StatsRange":
        if not days:
            return cls()
        if not (days.isascii() and days.isdigit() and len(days) < 6 and 1 <= int(days) <= MOST_DAYS):
            return cls(problem=f"The number of days lies between 1 and {MOST_DAYS:,}.")
        return cls(int(days))

    def bounds(self, of: Charted, now: float) -> tuple[int, int]:
        """First day and the one after the last, on the calendar of what is counted; months for what is so kept.

        Days that have not begun are left out. What lies in the future as a whole is its newest day.
        """
        newest = last_of(of, now)
        if is_monthly(of):
            start, end = self._days(dates.unix_date(now, of.home))
            first, last = (
                int(dates.date_to_unix_month(dates.unix_date_to_date(UnixDate(day)))) for day in (start, end - 1)
            )
            # Of a few days one month would be all; the line of the last half year says more.
            first = min(first, last - 5) if self.first is None else first
            return max(0, min(first, newest)), min(last, newest) + 1
        start, end = self._days(newest)
        return max(0, min(start, newest)), min(end, newest + 1)

    def _days(self, newest: int) -> tuple[int, int]:
        if self.first is None or self.last is None:
            return newest + 1 - self.days, newest + 1
        return int(dates.date_to_unix_date(self.first)), int(dates.date_to_unix_date(self.last)) + 1

    @property
    def query(self) -> str:
        """As the address spells it."""
        if self.first is None or self.last is None:
            return urlencode({"days": self.days})
        return urlencode({"from": self.first.isoformat(), "to": self.last.isoformat()})

    @property
    def said(self) -> str:
        if self.first is None or self.last is None:
            return f"last {self.days} days" if self.days != 1 else "today"
        return f"{self.first.isoformat()} to {self.last.isoformat()}"


def picker(path: str, shown: StatsRange, newest: date, extra: Mapping[str, str] | None = None) -> str:
    """Links to the usual ranges and a form for any other, as HTML. ``extra`` stays in the address as it is."""
    kept = dict(extra or {})
    links = "".join(
        f'<a href="{escape(path)}?{escape(urlencode({"days": days, **kept}))}"'
        f'{" aria-current=true" if shown.first is None and shown.days == days else ""}>{days} days</a>'
        for days in CHOICES
    )
    first, last = shown.first, shown.last
    if first is None or last is None:
        last = newest
        first = date.fromordinal(max(date(1970, 1, 1).toordinal(), newest.toordinal() - shown.days + 1))
    hidden = "".join(f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
                     for name, value in kept.items())
    custom = "" if shown.first is None else " custom"
    return (
        f'<div class="ks-range"><nav class="ks-tabs" aria-label="Range of days">{links}</nav>'
        f'<form class="ks-dates{custom}" action="{escape(path)}" aria-label="Days from and to">{hidden}'
        f'<input type="date" name="from" value="{first.isoformat()}" min="1970-01-01" required aria-label="From">'
        '<span class="quiet">to</span>'
        f'<input type="date" name="to" value="{last.isoformat()}" min="1970-01-01" required aria-label="To">'
        '<button class="ks-btn">Show</button></form></div>'
    )
