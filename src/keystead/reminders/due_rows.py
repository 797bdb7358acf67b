"""Which reminders get their time next: the rows of a zone in the order in which they are due."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, literal, select, tuple_

from keystead.members.tables import USERS
from keystead.reminders.tables import REMINDERS
from keystead.store import Database


@dataclass(frozen=True, slots=True)
class DueRow:
    """One reminder as it is chosen a time for; start and end in seconds after local midnight."""

    start_time: int
    uid: str
    end_time: int
    channel: str


class DueRows:
    """Reads pages of rows behind a cursor, so that the memory it takes does not depend on how many there are."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def zones(self) -> list[str]:
        """Every time zone that some reminder has; each costs one step on an index, however many rows it has."""
        zone, found = REMINDERS.c.timezone, []
        async with self._database.reading() as sql:
            last: str | None = await sql.scalar(select(func.min(zone)))
            while last is not None:
                found.append(last)
                last = await sql.scalar(select(func.min(zone)).where(zone > last))
        return found

    async def page(
        self, zone: str, cursor: tuple[int, str], *, weekday: int, up_to: int, joined_before: float, most: int
    ) -> Sequence[DueRow]:
        """Rows of the zone behind the cursor that start by ``up_to`` on a day that is this ``weekday`` (0: Sunday).

        Nobody who joined at ``joined_before`` or later is among them.
        """
        wanted = page_query(zone, cursor, weekday=weekday, up_to=up_to, joined_before=joined_before, most=most)
        async with self._database.reading() as sql:
            return [DueRow(*each) for each in await sql.execute(wanted)]


def page_query(
    zone: str, cursor: tuple[int, str], *, weekday: int, up_to: int, joined_before: float, most: int
) -> Select[Any]:
    """The statement of ``page``.

    The cursor is compared as a pair: databases then begin at its place in the index. Most people share a start with
    very many others, whom each page would otherwise have to pass by again.
    """
    row = REMINDERS.c
    return (
        select(row.start_time, row.uid, row.end_time, row.channel)
        .join(USERS, USERS.c.id == row.user_id)
        .where(
            row.timezone == zone, tuple_(row.start_time, row.uid) > tuple_(literal(cursor[0]), literal(cursor[1])),
            row.start_time <= up_to, row.day_of_week_mask.op("&")(1 << weekday) != 0,
            USERS.c.created_at < joined_before,
        )
        .order_by(row.start_time, row.uid)
        .limit(most)
    )
