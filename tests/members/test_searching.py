"""People are found by what is known of them."""

from sqlalchemy import update

from keystead.ids import UserSub
from keystead.members.searching import (
    MOST_CHARACTERS,
    count_people,
    find_people,
    listed_people,
    newest_people,
    people_named,
)
from keystead.members.tables import USERS

from .room import NOON, Room

ADA = UserSub("user_ada")
BEN = UserSub("user_ben")


async def test_people_are_found_by_sub_address_or_number(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
        await room.contacts.add_email(sub, "both@example.com")
    await room.contacts.add_phone(BEN, "+14155550123")
    found = [await find_people(room.database, text) for text in (
        " user_ada ", "Both@Example.com", "+1 415 555 0123", "1 415 555 0123", "nobody@example.com", "+14155550199",
    )]
    assert found == [[ADA], [ADA, BEN], [BEN], [BEN], [], []]


async def test_what_can_be_nobody_is_found_nowhere(room: Room) -> None:
    for text in ("", "   ", "x" * (MOST_CHARACTERS + 1), "a\0b", "'; DROP TABLE users; --", "%"):
        assert await find_people(room.database, text) == []


async def test_people_are_found_by_the_beginnings_of_their_names(room: Room) -> None:
    for sub, given, family in ((ADA, "Ada", "Lovelace"), (BEN, "Ben", "Adams"), ("user_per", "100%", "_")):
        await room.person(sub, NOON)
        async with room.database.transaction() as sql:
            await sql.execute(update(USERS).where(USERS.c.sub == sub).values(given_name=given, family_name=family))
    named = [[one.sub for one in await people_named(room.database, text)] for text in (
        "ada", "AD love", "ben a", "love ada", "dams", "100%", "%", "_", " ", "a b c d e", "a\0b")]
    assert named == [[BEN, ADA], [ADA], [BEN], [ADA], [], ["user_per"], [], ["user_per"], [], [], []]


async def test_everybody_is_listed_newest_first_in_pages(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
    newest = await newest_people(room.database, most=1)
    assert [one.sub for one in newest] == [BEN] and await count_people(room.database) == 2
    assert [one.sub for one in await newest_people(room.database, before=newest[0].number)] == [ADA]
    assert [one.sub for one in await listed_people(room.database, [ADA, UserSub("user_none")])] == [ADA]
