"""Names and numbers of statistics as people read them."""

from html import escape
from urllib.parse import quote, urlencode

from keystead.patterns import Cohorts, DailyFamily, DimensionViews, RowsByDay
from keystead.stats import Charted
from keystead.stats.charts_calendar import is_monthly, labels_of, zone_name
from keystead.stats.series import CANONICAL
from keystead.web.dashboard.shown import NOTHING, shown_duration
from keystead.web.dashboard.stats_range import StatsRange


def room_of(one: Charted) -> str:
    """The room, or the program, that counts it."""
    key = one.earliest_keys[0] if isinstance(one, DimensionViews) else one.earliest_key
    return key.room


def titled(name: str) -> str:
    """``daily_active_users`` as words."""
    words = name.replace("_", " ").replace(":", ": ")
    return words[:1].upper() + words[1:]


def broken_up(name: str) -> str:
    """A name as HTML that may go on in the next line where people would break it."""
    return escape(name).replace("_", "_<wbr>").replace(":", ":<wbr>")


def stats_address(name: str, shown: StatsRange) -> str:
    return f"/stats/{quote(name, safe=':')}?{shown.query}"


def zone_said(one: Charted) -> str:
    """The calendar that decides on its days."""
    kept = "months" if is_monthly(one) else "days"
    return f"{kept} in {zone.replace('_', ' ')}" if (zone := zone_name(one)) != CANONICAL else \
        f"{kept} of each person's own calendar"


def shown_took(seconds: float | None) -> str:
    """``240 ms``, ``3.2 s``, ``12 min 5 s``."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else shown_duration(seconds)


def exact(count: int) -> str:
    """Every digit, for tables that are read beside other tables."""
    return f"{count:,}"


def csv_address(one: Charted, bounds: tuple[int, int], *, by: str = "week") -> str:
    """Where programs, and spreadsheets, get the same days; the way there depends on the kind."""
    first, last = (label if len(label) == 10 else f"{label}-01" for label in (
        labels_of(one, bounds[0], bounds[0] + 1)[0], labels_of(one, bounds[1] - 1, bounds[1])[0]
    ))
    folder, asked = "", {"from": first, "to": last}
    if isinstance(one, Cohorts):
        folder, asked = "cohorts/", {"by": by}
    elif isinstance(one, DimensionViews | RowsByDay):
        folder, asked = "views/" if isinstance(one, DimensionViews) else "rows/", {"day": last}
    elif not isinstance(one, DailyFamily):
        folder = "numbers/"
    return f"/api/1/stats/{folder}{quote(one.name, safe=':')}?{urlencode({**asked, 'format': 'csv'})}"
