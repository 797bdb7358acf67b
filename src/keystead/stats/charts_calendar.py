"""Which days may be asked for, and when an answer about them is over."""

from typing import Final
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.dates import UnixDate
from keystead.errors import Invalid
from keystead.patterns import DailyFamily
from keystead.stats.catalogue import Charted
from keystead.stats.series import CANONICAL, day_labels, month_labels

MOST_DAYS: Final = 3660
_FIRST_ZONE_SECONDS: Final = 14 * 3600.0  # where a day begins first
_UTC: Final = ZoneInfo("UTC")


def is_monthly(of: Charted) -> bool:
    """Whether it is kept by month."""
    return not isinstance(of, DailyFamily) and of.monthly


def zone_name(of: Charted) -> str:
    """The zone that decides on its days, for people."""
    return CANONICAL if of.zone is None else of.zone.key


def today_of(of: Charted, now: float) -> int:
    """The day, or month, it is now in its home."""
    return dates.unix_month(now, of.home) if is_monthly(of) else dates.unix_date(now, of.home)


def last_of(of: Charted, now: float) -> int:
    """The newest day that something can have been counted on; a canonical day begins first at UTC+14."""
    today, at_the_first = today_of(of, now), now + _FIRST_ZONE_SECONDS
    if of.zone is not None:
        return today
    return max(today, dates.unix_month(at_the_first, _UTC) if is_monthly(of) else dates.unix_date(at_the_first, _UTC))


def to_midnight(home: ZoneInfo, now: float) -> float:
    """Seconds until the next day begins there."""
    return dates.day_starts_at(UnixDate(dates.unix_date(now, home) + 1), home) - now


def labels_of(of: Charted, start: int, end: int) -> list[str]:
    return month_labels(start, end) if is_monthly(of) else day_labels(start, end)


def check_range(of: Charted, start: int, end: int, now: float) -> None:
    """Refuse a range that is empty, too long, or not over the past and today. ``end`` is exclusive."""
    what = "months" if is_monthly(of) else "days"
    if not 0 <= start < end:
        raise Invalid(f"{of.name}: a range has at least one of {what}, and ends after it starts; got {start} to {end}, "
                      "the end exclusive")
    last = last_of(of, now)
    if end - 1 > last:
        raise Invalid(f"{of.name}: {labels_of(of, last, last + 1)[0]} is the newest of {what} that can be asked for; "
                      f"the range ends {end - 1 - last} later")
    if end - start > MOST_DAYS:
        raise Invalid(f"{of.name}: a range has at most {MOST_DAYS} {what}, got {end - start}; ask for it in parts")
