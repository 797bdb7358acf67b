"""Calendar days and months as whole numbers, in a named time zone.

A *unix date* counts days and a *unix month* counts months since January 1970, both on the wall calendar of a zone,
so that a day's statistics have one integer whatever the zone's daylight-saving rules did that night.
"""

from datetime import date, datetime, timedelta
from typing import Final, NewType
from zoneinfo import ZoneInfo

UnixDate = NewType("UnixDate", int)
UnixMonth = NewType("UnixMonth", int)

LOS_ANGELES: Final = "America/Los_Angeles"  # by its calendar the rooms' statistics are kept
_EPOCH = date(1970, 1, 1)


def unix_date(at: float, zone: ZoneInfo) -> UnixDate:
    """The day that the wall calendar of ``zone`` showed at unix time ``at``."""
    return date_to_unix_date(datetime.fromtimestamp(at, zone).date())


def unix_month(at: float, zone: ZoneInfo) -> UnixMonth:
    """The month that the wall calendar of ``zone`` showed at unix time ``at``."""
    return date_to_unix_month(datetime.fromtimestamp(at, zone).date())


def date_to_unix_date(day: date) -> UnixDate:
    return UnixDate((day - _EPOCH).days)


def unix_date_to_date(day: UnixDate) -> date:
    return _EPOCH + timedelta(days=day)


def date_to_unix_month(day: date) -> UnixMonth:
    return UnixMonth((day.year - 1970) * 12 + day.month - 1)


def unix_month_to_date(month: UnixMonth) -> date:
    """The first day of that month."""
    return date(1970 + month // 12, month % 12 + 1, 1)


def day_starts_at(day: UnixDate, zone: ZoneInfo) -> float:
    """The first instant of that day in ``zone``; where a clock change skipped midnight, the instant of the change."""
    return datetime.combine(unix_date_to_date(day), datetime.min.time(), zone).timestamp()
