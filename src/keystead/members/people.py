"""People by the number of their row, for whoever changes what belongs to them; and how they can be reached."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.members.contact_tables import (
    SUPPRESSED_EMAILS,
    SUPPRESSED_PHONE_NUMBERS,
    USER_EMAIL_ADDRESSES,
    USER_PHONE_NUMBERS,
    USER_PUSH_TOKENS,
)
from keystead.members.tables import USERS

EMAIL_SUPPRESSED = exists().where(SUPPRESSED_EMAILS.c.folded == USER_EMAIL_ADDRESSES.c.folded)
_ID = select(USERS.c.id).where(USERS.c.sub == bindparam("sub"))  # once: making it takes longer than the answer
PHONE_SUPPRESSED = exists().where(SUPPRESSED_PHONE_NUMBERS.c.phone_number == USER_PHONE_NUMBERS.c.phone_number)


@dataclass(frozen=True, slots=True)
class Person:
    """The number of somebody's row. ``timezone``: what they said, None if nothing."""

    id: int
    timezone: str | None


async def lock_person(sql: AsyncConnection, sub: UserSub) -> int:
    """The person's number. Whoever changes what is theirs waits here until this transaction ends; ``NotFound``."""
    people = await lock_people(sql, [sub])
    if sub not in people:
        raise NotFound("there is no such person")
    return people[sub].id


async def find_person(sql: AsyncConnection, sub: UserSub) -> int:
    """The person's number, without holding them; ``NotFound``."""
    user: int | None = await sql.scalar(_ID, {"sub": sub})
    if user is None:
        raise NotFound("there is no such person")
    return user


async def lock_people(sql: AsyncConnection, subs: Iterable[UserSub]) -> dict[UserSub, Person]:
    """Those of the people who exist, held until this transaction ends; a thousand at most.

    They are held in the order of their numbers, so that nobody waits in a circle.
    """
    found = await sql.execute(
        select(USERS.c.sub, USERS.c.id, USERS.c.timezone).where(USERS.c.sub.in_(set(subs))).order_by(USERS.c.id)
        .with_for_update(key_share=True)
    )
    return {UserSub(sub): Person(user, timezone) for sub, user, timezone in found}


async def reachable(sql: AsyncConnection, user_ids: Collection[int]) -> dict[int, set[str]]:
    """On which channels (email, sms, push) people can be written to, by number; three queries.

    By email and sms with an address that is verified, enabled and not suppressed; by push with an enabled device.
    """
    emails, phones, tokens = USER_EMAIL_ADDRESSES.c, USER_PHONE_NUMBERS.c, USER_PUSH_TOKENS.c
    found: dict[int, set[str]] = {user: set() for user in user_ids}
    for channel, query in (
        ("email", select(emails.user_id).where(emails.verified, emails.receives_notifications, ~EMAIL_SUPPRESSED)),
        ("sms", select(phones.user_id).where(phones.verified, phones.receives_notifications, ~PHONE_SUPPRESSED)),
        ("push", select(tokens.user_id).where(tokens.receives_notifications)),
    ):
        column = query.selected_columns[0]
        for user in await sql.scalars(query.where(column.in_(user_ids)).distinct()):
            found[user].add(channel)
    return found
