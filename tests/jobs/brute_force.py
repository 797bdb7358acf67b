"""When a calendar runs, found by looking at one time after another."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from keystead.jobs.calendar import DAYS_OF_WEEK, Calendar


def accepted(when: Calendar, local: datetime) -> bool:
    """The filters as the sentence has them, one by one."""
    return (
        (when.months is None or local.month in when.months)
        and (when.days_of_month is None or local.day in when.days_of_month)
        and (when.days_of_week is None or DAYS_OF_WEEK[local.weekday()] in when.days_of_week)
        and (when.hours is None or local.hour in when.hours)
        and (when.minutes is None or local.minute in when.minutes)
        and (when.seconds is None or local.second in when.seconds)
    )


def runs_between(when: Calendar, first: int, last: int, step: int) -> list[int]:
    """The runs from ``first`` to ``last``, both included, of a calendar whose times are all multiples of ``step``."""
    place, every_hour = ZoneInfo(when.zone), when.hours is None or len(when.hours) == 24
    found, stride = [], timedelta(seconds=step)
    before = datetime.fromtimestamp(first - step, place).replace(tzinfo=None)
    for second in range(first, last + 1, step):
        at = datetime.fromtimestamp(second, place)
        shown = at.replace(tzinfo=None, fold=0)
        first_skipped, before = before + stride, shown
        skipped = (first_skipped + stride * ahead for ahead in range((shown - first_skipped) // stride))
        if (accepted(when, shown) and (at.fold == 0 or every_hour)) or any(accepted(when, one) for one in skipped):
            found.append(second)
    return found
