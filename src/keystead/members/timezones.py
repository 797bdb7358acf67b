"""Which time zone a person lives by. Whoever has not said lives by the zone that the statistics are kept in."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import select, update

from keystead.dates import LOS_ANGELES
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub
from keystead.members.tables import USERS
from keystead.store import Database

DEFAULT_ZONE: Final = LOS_ANGELES
_STEP: Final = 1000


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones())


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

    def __init__(self, database: Database) -> None:
        self._database = database

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

    async def set(self, sub: UserSub, timezone: str) -> bool:
        """Store where the person lives by now; says whether that is a change.

        ``Invalid`` for a zone that does not exist, ``NotFound`` for a person who does not.
        """
        checked_zone(timezone)
        async with self._database.transaction() as sql:
            changed = await sql.execute(
                update(USERS).where(USERS.c.sub == sub, USERS.c.timezone.is_distinct_from(timezone))
                .values(timezone=timezone)
            )
            if changed.rowcount:
                return True
            if (await sql.execute(select(USERS.c.id).where(USERS.c.sub == sub))).first() is None:
                raise NotFound("there is no such person")
            return False
