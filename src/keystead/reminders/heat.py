"""When people are reminded, by the hour of their day: as they wish it, and as it happened. The database adds up."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Integer, cast, func, select

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
    """From the windows of all reminders. Two queries, each of them a walk over the table; few rows come back."""
    rows = REMINDERS.c
    first = rows.start_time // QUARTER_SECONDS
    last = (rows.end_time - 1) // QUARTER_SECONDS
    windows = select(first, last, rows.day_of_week_mask, rows.channel, func.count()).group_by(
        first, last, rows.day_of_week_mask, rows.channel)
    zones = select(rows.timezone, func.count()).group_by(rows.timezone)
    async with database.reading() as sql:
        found = [(int(start), int(end), int(mask), str(channel), int(count))
                 for start, end, mask, channel, count in await sql.execute(windows)]
        by_zone = [(str(zone), int(count)) for zone, count in await sql.execute(zones)]
    channels: dict[str, int] = defaultdict(int)
    for *_, channel, count in found:
        channels[channel] += count
    return Wishes(spread((start, end, mask, count) for start, end, mask, _, count in found), dict(channels),
                  dict(sorted(by_zone, key=lambda pair: (-pair[1], pair[0]))))


def spread(windows: Iterable[tuple[int, int, int, int]]) -> Grid:
    """Reminders by weekday and hour, each spread evenly over its window.

    A window is its first and last quarter of an hour after midnight, its days as a mask, and how many have it. What
    lies after midnight belongs to the next day.
    """
    grid = [[0.0] * HOURS for _ in range(DAYS)]
    for first, last, mask, count in windows:
        quarters = range(first, max(first, last) + 1)
        share = count / len(quarters)
        for day in range(DAYS):
            if mask >> day & 1:
                for quarter in quarters:
                    later, of_day = divmod(quarter, _DAY_QUARTERS)
                    grid[(day + later) % DAYS][of_day // 4] += share
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
    return tuple(tuple(round(number, 3) for number in row) for row in rows)
