"""What everything that is kept by day has in common: a name, a calendar, and the rule by which a day may leave."""

from collections.abc import Generator
from typing import Final, Generic, TypeVar
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.errors import DeclarationError
from keystead.patterns.rotation import time_of_day

T = TypeVar("T")

LATE: Final = -1  # answered instead of a number when the day was rotated already
_LATEST_DAY: Final = 99_999  # in the year 2243; beyond it someone has counted in other units
_LONGEST_RANGE: Final = 366


class ByDay:
    """Something kept by day (or by month) until it is rotated into ``table``.

    ``zone`` decides which day an instant falls on; without one the callers name the day. Today and the
    ``held_days - 1`` days before stay here; the rest is due when it is ``rotates_at`` in the zone, or in UTC.
    """

    def __init__(
        self, name: str, *, zone: str | None, table: str | None, held_days: int, rotates_at: str, purpose: str,
        monthly: bool = False,
    ) -> None:
        if held_days < 1:
            raise DeclarationError(f"{name}: held_days must be at least 1, got {held_days}")
        self.name, self.purpose, self.table, self.monthly = name, purpose, table, monthly
        self.held_days, self.rotates_at = held_days, time_of_day(name, rotates_at)
        self.zone = None if zone is None else ZoneInfo(zone)
        self.home = self.zone or ZoneInfo("UTC")

    def day_of(self, at: float) -> int:
        """The day, or month, that the instant falls on."""
        if self.zone is None:
            raise DeclarationError(f"{self.name} counts canonical days: give the day, not an instant")
        if not 0 <= at < _LATEST_DAY * 86400:
            raise DeclarationError(f"{self.name}: an instant is a unix time in seconds, got {at!r}")
        return dates.unix_month(at, self.zone) if self.monthly else dates.unix_date(at, self.zone)

    def chosen_day(self, at: float | None, day: int | None, today: int | None = None) -> int:
        """The day of a call that gives ``at`` or ``day``; with ``today`` a day in the future is refused.

        Canonical days may be one ahead: somewhere it is tomorrow already.
        """
        if (at is None) == (day is None):
            raise DeclarationError(f"{self.name}: say when: at= an instant, or day= a day, and not both")
        chosen = self.checked_day(self.day_of(at) if at is not None else day)
        if today is not None and chosen > today + (self.zone is None):
            raise DeclarationError(f"{self.name}: day {chosen} lies in the future, today is {today}")
        return chosen

    def checked_day(self, day: object) -> int:
        if day.__class__ is not int or not 0 <= day <= _LATEST_DAY:
            raise DeclarationError(f"{self.name}: a day is a whole number from 0 to {_LATEST_DAY}, got {day!r}")
        return day

    def checked_range(self, first: int, last: int, most: int = _LONGEST_RANGE) -> range:
        """The days from ``first`` to ``last``, both included."""
        days = range(self.checked_day(first), self.checked_day(last) + 1)
        if not 1 <= len(days) <= most:
            raise DeclarationError(f"{self.name}: a range has one to {most} days, got {first} to {last}")
        return days


def name_of(prefix: str) -> str:
    """The name by which something with this prefix is known: without the ``stats:`` that all of them begin with."""
    return prefix.removeprefix("stats:")


class Known(Generic[T]):
    """An answer that needs no server, awaited like any other."""

    __slots__ = ("_answer",)

    def __init__(self, answer: T) -> None:
        self._answer = answer

    def __await__(self) -> Generator[None, None, T]:
        return self._answer
        yield
