"""Whom a reminder is for: its row and its person, read together, and whether they took part when last asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from keystead.ids import UserSub
from keystead.members.tables import USERS
from keystead.messaging.touches import Channel
from keystead.reminders.tables import ENGAGED, REMINDERS
from keystead.store import Database


@dataclass(frozen=True, slots=True)
class Reader:
    """The person behind one reminder. ``end_time``: when its window ends, in seconds after local midnight."""

    user_id: int
    sub: UserSub
    given_name: str
    channel: Channel
    timezone: str
    end_time: int
    joined_at: float
    was_engaged: bool | None


class Readers:
    """Reads people by their reminders, and writes down whether they take part."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, uids: Sequence[str]) -> dict[str, Reader]:
        """The reader of each reminder that still exists; one query."""
        wanted = (
            select(REMINDERS.c.uid, USERS.c.id, USERS.c.sub, USERS.c.given_name, REMINDERS.c.channel,
                   REMINDERS.c.timezone, REMINDERS.c.end_time, USERS.c.created_at, ENGAGED.c.engaged)
            .join(USERS, USERS.c.id == REMINDERS.c.user_id)
            .outerjoin(ENGAGED, ENGAGED.c.user_id == USERS.c.id)
            .where(REMINDERS.c.uid.in_(uids))
        )
        async with self._database.reading() as sql:
            return {uid: Reader(*rest) for uid, *rest in await sql.execute(wanted)}

    async def store_engaged(self, changed: Mapping[int, bool]) -> None:
        """Whether people take part now, by the number of their row; who is gone meanwhile is left out."""
        if not changed:
            return
        async with self._database.transaction() as sql:
            still_there = set(await sql.scalars(select(USERS.c.id).where(USERS.c.id.in_(changed))))
            rows = [{"user_id": user, "engaged": engaged} for user, engaged in changed.items() if user in still_there]
            if rows:
                given = self._database.insert(ENGAGED)
                await sql.execute(given.on_conflict_do_update(
                    index_elements=[ENGAGED.c.user_id], set_={"engaged": given.excluded.engaged}
                ), rows)
