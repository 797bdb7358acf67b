"""People are found by what is known of them."""

from keystead.ids import UserSub
from keystead.members.searching import MOST_CHARACTERS, find_people

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
