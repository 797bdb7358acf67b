"""Devices: one owner each, ten for each person, and every change counted as exactly one thing."""

import asyncio

import pytest
from sqlalchemy import select

from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub
from keystead.members import Registered
from keystead.members.contact_tables import USER_PUSH_TOKENS
from keystead.members.push_tokens import TOKENS_PER_PERSON

from .room import NOON, Room, on_sqlite

ADA, BEN = UserSub("user_ada"), UserSub("user_ben")


def token(number: int) -> str:
    return f"ExponentPushToken[device-{number}]"


async def test_a_device_is_made_refreshed_and_handed_on(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
    assert await room.tokens.register(ADA, token(1), "ios") is Registered.CREATED
    assert await room.heard() == [(ADA, "push", "push_token_added")]
    room.clock.advance(60)
    assert await room.tokens.register(ADA, token(1), "ios") is Registered.REFRESHED
    assert await room.heard() == []
    assert [device.last_seen_at for device in await room.contacts.listed_devices(ADA)] == [NOON + 60]
    assert await room.tokens.register(BEN, token(1), "android") is Registered.REASSIGNED
    assert await room.heard() == [(ADA, "push", "unreachable"), (BEN, "push", "push_token_added")]
    assert await room.contacts.tokens_of([ADA, BEN]) == {ADA: [], BEN: [token(1)]}
    assert [(action, why) for _, _, action, why in await room.log()] == [
        ("create_unverified", "app"), ("delete", "reassigned"), ("create_unverified", "app")]
    counts = await room.contact_counts()
    assert (counts["created"], counts["refreshed"], counts["reassigned"]) == (1, 1, 1)
    assert counts["created/push:enabled:app"] == 2 and counts["deleted/push:reassigned"] == 1


async def test_the_device_that_was_not_seen_for_the_longest_time_makes_room(room: Room) -> None:
    """Not the newest one, which is the one in the person's hand."""
    await room.person(ADA, NOON)
    for number in range(TOKENS_PER_PERSON):
        await room.tokens.register(ADA, token(number), "ios")
        room.clock.advance(1)
    await room.tokens.register(ADA, token(0), "ios")  # seen again: now number 1 is the oldest
    room.clock.advance(1)
    await room.tokens.register(ADA, token(99), "ios")
    left = (await room.contacts.tokens_of([ADA]))[ADA]
    assert sorted(left) == sorted(token(number) for number in (0, 99, *range(2, TOKENS_PER_PERSON)))
    counts = await room.contact_counts()
    assert (counts["deleted_due_to_token_limit"], counts["created"]) == (1, TOKENS_PER_PERSON + 1)
    assert counts["deleted/push:excessive"] == 1


@pytest.mark.parametrize(("because", "event", "reason"), [
    ("ticket", "deleted_due_to_unrecognized_ticket", "unreachable"),
    ("receipt", "deleted_due_to_unrecognized_receipt", "unreachable"), ("user", None, "user"),
])
async def test_a_device_that_is_gone_is_forgotten_and_counted_once(
    room: Room, because: str, event: str | None, reason: str
) -> None:
    await room.person(ADA, NOON)
    await room.tokens.register(ADA, token(1), "ios")
    await room.heard()
    forgotten = await asyncio.gather(*(room.tokens.forget(token(1), because) for _ in range(4)))  # type: ignore[arg-type]
    assert sorted(forgotten) == [False, False, False, True]
    assert await room.heard() == [(ADA, "push", reason)]
    counts = await room.contact_counts()
    assert {name: amount for name, amount in counts.items() if name.startswith("deleted_due")} == (
        {event: 1} if event else {})


@on_sqlite
async def test_nobody_forgets_the_device_of_another(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
    await room.tokens.register(ADA, token(1), "ios")
    assert not await room.tokens.forget(token(1), "user", sub=BEN)
    assert await room.tokens.forget(token(1), "user", sub=ADA)


async def test_a_message_that_arrived_confirms_the_device(room: Room) -> None:
    await room.person(ADA, NOON)
    await room.tokens.register(ADA, token(1), "ios")
    assert await room.tokens.confirm(token(1), NOON + 5) and not await room.tokens.confirm(token(2), NOON)
    async with room.database.reading() as sql:
        assert await sql.scalar(select(USER_PUSH_TOKENS.c.last_confirmed_at)) == NOON + 5


async def test_people_who_swap_devices_at_once_each_end_with_one_owner(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
    await asyncio.gather(*(
        room.tokens.register(sub, token(number), "ios") for _ in range(4) for sub in (ADA, BEN) for number in (1, 2)
    ))
    owned = await room.contacts.tokens_of([ADA, BEN])
    assert sorted(owned[ADA] + owned[BEN]) == [token(1), token(2)]
    counts = await room.contact_counts()
    assert counts.get("created", 0) + counts.get("refreshed", 0) + counts.get("reassigned", 0) == 16


@on_sqlite
@pytest.mark.parametrize(("wrong", "platform"), [
    ("", "ios"), ("abc", "ios"), ("ExponentPushToken[]", "ios"), ("ExponentPushToken[a b c d]", "ios"),
    ("ExponentPushToken[" + "x" * 60 + "]", "ios"), ("ExponentPushToken[abcdef]\n", "ios"), (token(1), "windows"),
])
async def test_what_is_no_token_is_refused(room: Room, wrong: str, platform: str) -> None:
    await room.person(ADA, NOON)
    with pytest.raises(Invalid):
        await room.tokens.register(ADA, wrong, platform)
    with pytest.raises(NotFound):
        await room.tokens.register(BEN, token(1), "ios")
