"""Rows of contacts: an address once for each person, in any spelling; and they go when their person goes."""

import pytest
from sqlalchemy import Table, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from keystead.ids import UserSub
from keystead.members.contact_tables import (
    CONTACT_METHOD_LOG,
    SUPPRESSED_EMAILS,
    SUPPRESSED_PHONE_NUMBERS,
    USER_EMAIL_ADDRESSES,
    USER_PHONE_NUMBERS,
    USER_PUSH_TOKENS,
    USER_TIMEZONE_LOG,
)
from keystead.members.people import lock_person
from keystead.members.tables import USERS

from .room import NOON, Room

ADA = UserSub("user_ada")


async def test_contacts_go_with_their_person_and_suppression_stays(room: Room) -> None:
    await room.person(ADA, NOON)
    await room.contacts.add_email(ADA, "ada@example.com")
    await room.contacts.add_phone(ADA, "+15555550123")
    await room.tokens.register(ADA, "ExponentPushToken[abcdefgh]", "ios")
    await room.timezones.set(ADA, "UTC")
    await room.suppression.suppress_phone("+15555550123", "Stop")

    async def rows(table: Table) -> int:
        return await sql.scalar(select(func.count()).select_from(table)) or 0

    theirs = (USER_EMAIL_ADDRESSES, USER_PHONE_NUMBERS, USER_PUSH_TOKENS, CONTACT_METHOD_LOG, USER_TIMEZONE_LOG)
    async with room.database.transaction() as sql:
        assert [await rows(table) for table in theirs] == [1, 1, 1, 3, 1]
        await sql.execute(delete(USERS))
        assert [await rows(table) for table in theirs] == [0, 0, 0, 0, 0]
        assert await rows(SUPPRESSED_PHONE_NUMBERS) == 1


async def test_the_same_address_twice_is_refused_by_the_tables_themselves(room: Room) -> None:
    await room.person(ADA, NOON)
    async with room.database.transaction() as sql:
        user = await lock_person(sql, ADA)
        for table, row in (
            (USER_EMAIL_ADDRESSES, {"user_id": user, "email": "A@x.com", "folded": "a@x.com", "created_at": NOON}),
            (SUPPRESSED_EMAILS, {"email_address": "A@x.com", "folded": "a@x.com", "reason": "User",
                                 "created_at": NOON}),
        ):
            uids = ({"uid": f"se_{number}"} if "uid" in table.c else {} for number in range(2))
            await sql.execute(insert(table).values(**row, **next(uids)))
            with pytest.raises(IntegrityError):
                async with sql.begin_nested():
                    await sql.execute(insert(table).values(**row, **next(uids)))
