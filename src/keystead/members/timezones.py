"""Which time zone a person lives by. Whoever has not said lives by the zone that the statistics are kept in."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub, new_uid
from keystead.members.contact_tables import USER_TIMEZONE_LOG
from keystead.members.keys import TIMEZONE_SAID
from keystead.members.tables import USERS
from keystead.store import Database, SqlOutbox

# A job that rooms above answer to: ``user_sub`` lives by ``timezone`` now.
TIMEZONE_JOB: Final = "members.timezone_changed"
DEFAULT_ZONE: Final = LOS_ANGELES
_STEP: Final = 1000


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones()) - {"localtime"}  # which is another one on each machine


def checked_zone(name: str) -> str:
    """The name, if there is such a zone; ``Invalid`` otherwise, with a name that is near."""
    if name in _known():
        return name
    near = get_close_matches(name[:60], _known(), 1)
    hint = f"did you mean {near[0]}?" if near else "give a name such as America/Los_Angeles"
    raise Invalid(f"there is no time zone {name[:60]!r}; {hint}")


def zone_of(name: str | None) -> ZoneInfo:
    """The zone of a stored name; the default one for None, and for a name that this machine does not know any more."""
    return ZoneInfo(name if name is not None and name in _known() else DEFAULT_ZONE)


class Timezones:
    """The zones of people, as they are stored."""

    def __init__(self, valkey: Valkey, database: Database, outbox: SqlOutbox, clock: Clock) -> None:
        self._valkey, self._database, self._outbox, self._clock = valkey, database, outbox, clock

    async def of(self, sub: UserSub) -> ZoneInfo:
        """The person's zone; the default one also for somebody who does not exist."""
        return (await self.of_many([sub]))[sub]

    async def of_many(self, subs: Iterable[UserSub]) -> dict[UserSub, ZoneInfo]:
        """The zone of each, a thousand people for each query."""
        wanted = list(dict.fromkeys(subs))
        names: dict[str, str | None] = {}
        async with self._database.reading() as sql:
            for first in range(0, len(wanted), _STEP):
                some = USERS.c.sub.in_(wanted[first : first + _STEP])
                found = await sql.execute(select(USERS.c.sub, USERS.c.timezone).where(some))
                names.update((sub, name) for sub, name in found)
        return {sub: zone_of(names.get(sub)) for sub in wanted}

    async def set(self, sub: UserSub, timezone: str, technique: str = "app") -> bool:
        """Store where the person lives by now; says whether that is a change. Who says the same again costs no SQL.

        ``technique``: how it was learnt. ``Invalid`` for a zone that does not exist, ``NotFound`` for a person who
        does not.
        """
        checked_zone(timezone)
        if await TIMEZONE_SAID.at(sub).get(self._valkey) == timezone:
            return False
        async with self._database.transaction() as sql:
            changed = await store_zone(sql, self._outbox, sub, timezone, technique, self._clock.now())
        await self.remember(sub, timezone)
        return changed

    async def remember(self, sub: UserSub, timezone: str) -> None:
        """The zone of the person was stored just now by ``store_zone``: whoever says the same again is not heard."""
        await TIMEZONE_SAID.at(sub).set(self._valkey, timezone)


async def store_zone(
    sql: AsyncConnection, outbox: SqlOutbox, sub: UserSub, timezone: str, technique: str, now: float
) -> bool:
    """Store a zone in the caller's transaction, with its log and the job that tells of it; says if it is a change.

    ``NotFound`` without the person. The zone was checked by the caller.
    """
    user = (await sql.execute(
        select(USERS.c.id, USERS.c.timezone).where(USERS.c.sub == sub).with_for_update(key_share=True)
    )).first()
    if user is None:
        raise NotFound("there is no such person")
    if user.timezone == timezone:
        return False
    await sql.execute(update(USERS).where(USERS.c.id == user.id).values(timezone=timezone))
    await sql.execute(insert(USER_TIMEZONE_LOG).values(
        uid=new_uid("utzl"), user_id=user.id, timezone=timezone, technique=technique, created_at=now
    ))
    await outbox.enqueue(sql, TIMEZONE_JOB, user_sub=sub, timezone=timezone)
    return True
