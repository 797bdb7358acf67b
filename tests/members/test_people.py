"""People by number, held by whoever changes what is theirs, and how they can be reached."""

import asyncio

import pytest

from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.members.people import find_person, lock_people, lock_person, reachable

from .room import NOON, Room, on_sqlite

ADA, BEN, CAT = UserSub("user_ada"), UserSub("user_ben"), UserSub("user_cat")


async def test_a_person_can_be_reached_only_by_what_is_verified_enabled_and_not_suppressed(room: Room) -> None:
    for sub in (ADA, BEN, CAT):
        await room.person(sub, NOON)
    await room.contacts.add_email(ADA, "ada@example.com", verified=True)
    await room.contacts.add_phone(ADA, "+15555550123", verified=True)
    await room.tokens.register(ADA, "ExponentPushToken[abcdefgh]", "ios")
    await room.contacts.add_email(BEN, "unproved@example.com")
    await room.contacts.add_email(BEN, "quiet@example.com", verified=True, receives_notifications=False)
    await room.contacts.add_phone(BEN, "+15555550124", verified=True)
    await room.suppression.suppress_phone("+15555550124", "User")
    async with room.database.transaction() as sql:
        people = await lock_people(sql, [ADA, BEN, CAT, UserSub("user_nobody")])
        assert set(people) == {ADA, BEN, CAT}
        found = await reachable(sql, [person.id for person in people.values()])
        assert [found[people[sub].id] for sub in (ADA, BEN, CAT)] == [{"email", "sms", "push"}, set(), set()]
        assert await find_person(sql, ADA) == await lock_person(sql, ADA) == people[ADA].id
        for look in (find_person, lock_person):
            with pytest.raises(NotFound):
                await look(sql, UserSub("user_nobody"))


async def test_who_holds_a_person_is_waited_for(room: Room) -> None:
    await room.person(ADA, NOON)
    order: list[str] = []
    held = asyncio.Event()

    async def first() -> None:
        async with room.database.transaction() as sql:
            await lock_person(sql, ADA)
            held.set()
            await asyncio.sleep(0.3)  # the other is given time to overtake
            order.append("first")

    async def second() -> None:
        await held.wait()
        async with room.database.transaction() as sql:
            await lock_person(sql, ADA)
            order.append("second")

    await asyncio.gather(first(), second())
    assert order == ["first", "second"]


@on_sqlite
async def test_nobody_is_asked_for_without_names(room: Room) -> None:
    async with room.database.transaction() as sql:
        assert await lock_people(sql, []) == {} and await reachable(sql, []) == {}
