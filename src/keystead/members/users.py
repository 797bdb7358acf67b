"""People: made at their first log-in with an identity, found at every other."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.edge import USER_PURPOSE, Endings, Page, PageRequest, make_cursor
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound, ReplyLost, Unavailable
from keystead.ids import UserSub, new_uid
from keystead.members.counting import CREATED_JOB, count_created
from keystead.members.people import lock_person
from keystead.members.tables import USER_IDENTITIES, USERS
from keystead.members.timezones import checked_zone
from keystead.store import Database, Query, SqlOutbox

ROUNDS: Final = 5
# Tells every room that the person goes, and takes the row away when all of them are done.
LEFT_JOB: Final = "keystead.members.left"
_LONGEST: Final = 255
_PAUSE_SECONDS: Final = 0.1
_BIGGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody. ``created``: this call made them. ``timezone``: what they said, None if nothing."""

    sub: UserSub
    given_name: str
    family_name: str
    admin: bool
    timezone: str | None
    created_at: float
    created: bool = False


class _LostRace(Exception):
    """Somebody else has just given the identity to a person of theirs."""


class Users:
    """Makes people and finds them."""

    def __init__(
        self, valkey: Valkey, database: Database, outbox: SqlOutbox, clock: Clock, endings: Endings | None = None,
    ) -> None:
        self._valkey, self._database, self._outbox, self._clock = valkey, database, outbox, clock
        self._endings = endings

    async def ensure(
        self, provider: str, provider_sub: str, *, given_name: str = "", family_name: str = "",
        timezone: str | None = None,
    ) -> Member:
        """The person whom ``provider`` knows as ``provider_sub``, made now if there was none.

        Any number may ask at once for the same identity: one of them makes the person. That somebody joined is counted
        once, also if this process dies after the commit. Names and zone are only used for a new person. ``Invalid`` for
        a zone that does not exist, an empty identity and text that is too long, before anything is written.
        """
        identity = _checked("provider", provider, 1), _checked("provider_sub", provider_sub, 1)
        new = Member(
            UserSub(new_uid("user")), _checked("given_name", given_name), _checked("family_name", family_name), False,
            None if timezone is None else checked_zone(timezone), self._clock.now(), True,
        )
        for _ in range(ROUNDS):
            async with self._database.reading() as sql:
                found = await self._of_identity(sql, *identity)
            if found is not None:
                # Ours is found when the answer to our own commit was lost.
                return await self._counted(new) if found.sub == new.sub else found
            try:
                await self._create(new, *identity)
            except (_LostRace, ReplyLost):
                await asyncio.sleep(random.uniform(_PAUSE_SECONDS, 2 * _PAUSE_SECONDS))
            else:
                return await self._counted(new)
        raise Unavailable(f"somebody of {identity[0]} could be neither found nor made in {ROUNDS} rounds; try again")

    async def get(self, sub: UserSub) -> Member:
        """The person; ``NotFound`` if there is none."""
        found = await self._database.rows(_BY_SUB, sub=sub)
        if not found:
            raise NotFound("there is no such person")
        return Member(*found[0])

    async def created_at(self, sub: UserSub) -> float | None:
        """When the person joined; None if there is none."""
        found = await self._database.rows(_CREATED_AT, sub=sub)
        return found[0][0] if found else None

    async def list(self, request: PageRequest) -> Page[Member]:
        """Everybody, in the order in which they joined, page by page."""
        after = request.position(int)
        query = select(USERS.c.id, *_FIELDS).order_by(USERS.c.id).limit(request.limit + 1)
        if after is not None:
            if not -_BIGGEST <= after <= _BIGGEST:
                raise Invalid("cursor is not one that this list gave out; leave it out to start from the beginning")
            query = query.where(USERS.c.id > after)
        async with self._database.reading() as sql:
            rows = (await sql.execute(query)).all()
        shown = rows[: request.limit]
        cursor = make_cursor(shown[-1][0]) if len(rows) > request.limit else None
        return Page(tuple(Member(*row[1:]) for row in shown), cursor)

    async def leave(self, sub: UserSub) -> None:
        """Forget who the person is: identities and names at once, the row when every room has let go of them.

        Whoever comes with the same identity afterwards is somebody new, and tokens of the person work no more.
        ``NotFound`` without the person. Call ``Contacts.erase`` first; both may be repeated.
        """
        async with self._database.transaction() as sql:
            user = await lock_person(sql, sub)
            await sql.execute(delete(USER_IDENTITIES).where(USER_IDENTITIES.c.user_id == user))
            await sql.execute(update(USERS).where(USERS.c.id == user).values(
                given_name="", family_name="", timezone=None))
            await self._outbox.enqueue(sql, LEFT_JOB, user_sub=sub)
        with suppress(Unavailable):  # the job that takes the row away ends them too
            await self._end_tokens(sub)

    async def remove(self, sub: UserSub) -> None:
        """Take the row away, and what rows of other rooms still hang on it. Safe to repeat."""
        async with self._database.transaction() as sql:
            await sql.execute(delete(USERS).where(USERS.c.sub == sub))
        await self._end_tokens(sub)

    async def _end_tokens(self, sub: UserSub) -> None:
        if self._endings is not None:
            await self._endings.end_all(USER_PURPOSE, sub)

    @staticmethod
    async def _of_identity(sql: AsyncConnection, provider: str, provider_sub: str) -> Member | None:
        row = (await sql.execute(
            select(*_FIELDS).join(USER_IDENTITIES, USER_IDENTITIES.c.user_id == USERS.c.id)
            .where(USER_IDENTITIES.c.provider == provider, USER_IDENTITIES.c.sub == provider_sub)
        )).first()
        return None if row is None else Member(*row)

    async def _create(self, new: Member, provider: str, provider_sub: str) -> None:
        """One transaction: person, identity, and the job that counts. Undone if the identity is taken by now."""
        async with self._database.transaction() as sql:
            user_id = (await sql.execute(insert(USERS).returning(USERS.c.id), {
                "sub": new.sub, "given_name": new.given_name, "family_name": new.family_name,
                "timezone": new.timezone, "created_at": new.created_at,
            })).scalar_one()
            given = self._database.insert(USER_IDENTITIES).on_conflict_do_nothing().returning(USER_IDENTITIES.c.id)
            identity = await sql.scalar(given, {
                "user_id": user_id, "provider": provider, "sub": provider_sub, "created_at": new.created_at,
            })
            if identity is None:
                raise _LostRace
            await self._outbox.enqueue(sql, CREATED_JOB, sub=new.sub, created_at=new.created_at)

    async def _counted(self, new: Member) -> Member:
        """Count at once, so that whatever the person does next finds them counted; the job is there if this fails."""
        with suppress(Unavailable):
            await count_created(self._valkey, new.sub, new.created_at)
        return replace(new, created=True)


_FIELDS: Final = (
    USERS.c.sub, USERS.c.given_name, USERS.c.family_name, USERS.c.admin, USERS.c.timezone, USERS.c.created_at,
)
_BY_SUB: Final = Query(select(*_FIELDS).where(USERS.c.sub == bindparam("sub")))
_CREATED_AT: Final = Query(select(USERS.c.created_at).where(USERS.c.sub == bindparam("sub")))


def _checked(what: str, text: str, least: int = 0) -> str:
    if not least <= len(text) <= _LONGEST or "\0" in text:
        raise Invalid(f"{what} must be text of {least} to {_LONGEST} characters, got {len(text)}")
    return text
