"""When people are reminded, by the hour of their day: as they wish it, and as it happened. The database adds up."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final

from sqlalchemy import Integer, case, cast, func, select

from keystead.members import zone_of
from keystead.members.tables import USERS
from keystead.messaging.touches.tables import TOUCH_POINTS, USER_TOUCHES
from keystead.reminders.tables import REMINDERS
from keystead.store import Database

# Every zone is a whole number of these from UTC.
QUARTER_SECONDS: Final = 900
HOURS: Final = 24
DAYS: Final = 7
_DAY_QUARTERS: Final = 24 * 4
SLUGS: Final = "daily_reminder"

Grid = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Wishes:
    """``grid[weekday][hour]``: reminders to be expected then, from Sunday; ``channels``: how many reminders there are.

    ``zones``: reminders by time zone, most first.
    """

    grid: Grid
    channels: dict[str, int]
    zones: dict[str, int]


async def wished(database: Database) -> Wishes:
    """From the windows of all reminders. Four walks over the table; at most some 40,000 rows come back, however many
    reminders there are."""
    rows = REMINDERS.c
    first = rows.start_time // QUARTER_SECONDS
    end = (rows.end_time - 1) // QUARTER_SECONDS
    last = case((end < first, first), else_=end)
    share, mask = func.sum(1.0 / (last - first + 1)), rows.day_of_week_mask
    begins = select(first, mask, share).group_by(first, mask)
    after = last + 1  # one expression: the database must see that both places mean the same
    ends = select(after, mask, -share).group_by(after, mask)
    async with database.reading() as sql:
        changes = [(int(quarter), int(days), float(more)) for query in (begins, ends)
                   for quarter, days, more in await sql.execute(query)]
        channels, zones = [{str(value): int(count) for value, count in await sql.execute(
            select(column, func.count()).group_by(column))} for column in (rows.channel, rows.timezone)]
    return Wishes(spread(changes), channels, dict(sorted(zones.items(), key=lambda pair: (-pair[1], pair[0]))))


def spread(changes: Iterable[tuple[int, int, float]]) -> Grid:
    """Reminders by weekday and hour.

    A change is a quarter of an hour after midnight from which on there are so many more in each quarter, on the days of
    a mask. A window is two of them: from its start on, and no more after its end. What lies after midnight belongs to
    the next day.
    """
    more = [[0.0] * (2 * _DAY_QUARTERS + 1) for _ in range(DAYS)]
    for quarter, mask, weight in changes:
        for day in range(DAYS):
            if mask >> day & 1:
                more[day][quarter] += weight
    grid = [[0.0] * HOURS for _ in range(DAYS)]
    for day, quarters in enumerate(more):
        for quarter, number in enumerate(accumulate(quarters[:-1])):
            later, of_day = divmod(quarter, _DAY_QUARTERS)
            grid[(day + later) % DAYS][of_day // 4] += number
    return _as_grid(grid)


async def happened(database: Database, since: float) -> Grid:
    """Reminders that arrived since then, by their readers' own weekday and hour."""
    touches = USER_TOUCHES.c
    quarter = cast(func.floor(touches.created_at / QUARTER_SECONDS), Integer)
    ours = select(TOUCH_POINTS.c.id).where(TOUCH_POINTS.c.event_slug.startswith(SLUGS, autoescape=True))
    query = (
        select(USERS.c.timezone, quarter, func.count()).select_from(USER_TOUCHES)
        .join(USERS, USERS.c.id == touches.user_id)
        .where(touches.touch_point_id.in_(ours), touches.created_at >= since).group_by(USERS.c.timezone, quarter)
    )
    async with database.reading() as sql:
        return by_local_hour((zone, int(at), int(count)) for zone, at, count in await sql.execute(query))


def by_local_hour(found: Iterable[tuple[str | None, int, int]]) -> Grid:
    """Counts by zone and quarter of an hour since the epoch, as weekdays and hours of that zone."""
    grid = [[0.0] * HOURS for _ in range(DAYS)]
    for zone, quarter, count in found:
        local = datetime.fromtimestamp(quarter * QUARTER_SECONDS, zone_of(zone))
        grid[local.isoweekday() % DAYS][local.hour] += count
    return _as_grid(grid)


def _as_grid(rows: list[list[float]]) -> Grid:
    return tuple(tuple(abs(round(number, 3)) for number in row) for row in rows)
