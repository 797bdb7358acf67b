"""Cron text, read into the same calendars as everything else.

Five fields (minute, hour, day of month, month, day of week), or six with seconds in front. What cannot be meant
exactly as cron means it is refused with the reason, never run at other times than the text says.
"""

import re
from dataclasses import dataclass

from keystead.errors import DeclarationError
from keystead.jobs.calendar import DAYS_OF_WEEK, AnyOf, Calendar, When

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NICKNAMES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_PART = re.compile(r"(?:(?P<all>\*|\?)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Field:
    """One column: its bounds, and the names that may stand for numbers from ``least`` on."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()


_SECOND, _MINUTE, _HOUR = _Field("second", 0, 59), _Field("minute", 0, 59), _Field("hour", 0, 23)
_DAY, _MONTH = _Field("day of month", 1, 31), _Field("month", 1, 12, _MONTHS)
_WEEKDAY = _Field("day of week", 0, 7, (DAYS_OF_WEEK[-1], *DAYS_OF_WEEK[:-1]))  # 0 and 7 are both Sunday


def cron(text: str, zone: str) -> When:
    """The calendar that cron text means on the wall clock of ``zone``; wrong text is refused where it is written.

    Lists, ranges, steps, names and ``@daily`` and the like are understood. Where day of month and day of week are both
    given, either is enough, as cron has it.
    """
    columns = _NICKNAMES.get(text.strip().lower(), text).split()
    if text.strip().startswith("@") and len(columns) < 5:
        raise DeclarationError(f"cron {text!r}: there is no such name; there are {', '.join(_NICKNAMES)}")
    if len(columns) == 5:
        columns.insert(0, "0")
    if len(columns) != 6:
        raise DeclarationError(
            f"cron {text!r}: needs five fields (minute hour day month weekday), or six with seconds in front; "
            f"it has {len(columns)}"
        )
    every = [column in ("*", "?") for column in columns]
    kinds = (_SECOND, _MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)
    seconds, minutes, hours, days, months, weekdays = (
        _values(text, column, kind) for column, kind in zip(columns, kinds, strict=True)
    )
    week = tuple(DAYS_OF_WEEK[number] for number in sorted({(day - 1) % 7 for day in weekdays}))
    in_day = all(every[3:])  # no filter coarser than the hour
    needs_hours = not every[2] or not in_day

    def calendar(days_of_month: tuple[int, ...] | None, days_of_week: tuple[str, ...] | None) -> Calendar:
        return Calendar(
            zone, months=None if every[4] else months, days_of_month=days_of_month, days_of_week=days_of_week,
            hours=hours if needs_hours else None, minutes=minutes if needs_hours or not every[1] else None,
            seconds=seconds,
        )

    try:
        if every[3] or every[5]:
            return calendar(None if every[3] else days, None if every[5] else week)
        if columns[3][0] in "*?" or columns[5][0] in "*?":
            # A column that begins with a star narrows the other one instead of adding to it.
            raise DeclarationError("days that must fit both day columns cannot be expressed; list them in one column")
        by_week = calendar(None, week)
        try:
            return AnyOf((calendar(days, None), by_week))
        except DeclarationError:  # a day that none of the months has adds nothing
            return by_week
    except DeclarationError as error:
        raise DeclarationError(f"cron {text!r}: {error}") from None


def _values(text: str, column: str, field: _Field) -> tuple[int, ...]:
    found: set[int] = set()
    for part in column.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise _wrong(text, part, field, "it must read like 5, 1-5, */15, 10-50/10 or *")
        step = int(match["step"] or 1)
        if match["all"]:
            first, last = field.least, min(field.most, 6) if field is _WEEKDAY else field.most
        else:
            first = _number(text, match["first"], field)
            last = first if match["last"] is None else _number(text, match["last"], field)
            if field is _WEEKDAY and last == 0 < first:
                last = 7
            if match["step"] and match["last"] is None:
                raise _wrong(text, part, field, f"a step needs a range, such as {first}-{field.most}/{step}")
        if step < 1 or first > last:
            raise _wrong(text, part, field, "a range goes from the smaller to the larger, in steps of 1 or more")
        found.update(range(first, last + 1, step))
    return tuple(sorted(found))


def _number(text: str, word: str, field: _Field) -> int:
    if word.lower() in field.names:
        return field.names.index(word.lower()) + field.least
    if not word.isdigit() or not field.least <= int(word) <= field.most:
        names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise _wrong(text, word, field, f"it must be a number from {field.least} to {field.most}{names}")
    return int(word)


def _wrong(text: str, part: str, field: _Field, hint: str) -> DeclarationError:
    return DeclarationError(f"cron {text!r}: {part!r} is no {field.name}; {hint}")
