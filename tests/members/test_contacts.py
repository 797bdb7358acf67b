"""Contacts: each change is stored, logged, counted once, and told to those above if it may matter to them."""

import asyncio

import pytest
from sqlalchemy import func, select

from keystead.errors import Conflict, Invalid, NotFound
from keystead.ids import UserSub
from keystead.members import Added, Described
from keystead.members.contact_tables import (
    CONTACT_METHOD_LOG,
    EMAIL_FAILURES,
    USER_EMAIL_ADDRESSES,
    USER_PHONE_NUMBERS,
    USER_PUSH_TOKENS,
    USER_TIMEZONE_LOG,
)
from keystead.members.contacts import MOST_ADDRESSES
from keystead.members.keys import TIMEZONE_SAID

from .room import NOON, Room, on_sqlite

ADA = UserSub("user_ada")
BEN = UserSub("user_ben")
TOKEN = "ExponentPushToken[abcdefgh]"


async def test_an_address_counts_from_when_it_is_verified(room: Room) -> None:
    await room.person(ADA, NOON)
    assert await room.contacts.add_email(ADA, "Ada@Example.com") is Added.CREATED
    assert await room.heard() == [], "nobody writes to an address that nobody proved"
    assert await room.contacts.emails_of([ADA]) == {ADA: []}
    assert await room.contacts.add_email(ADA, "ada@example.com", verified=True, why="identity") is Added.VERIFIED
    assert await room.contacts.add_email(ADA, "ADA@example.com", verified=True) is Added.KNOWN
    assert await room.heard() == [(ADA, "email", "email_added")]
    assert await room.contacts.emails_of([ADA, BEN]) == {ADA: ["Ada@example.com"], BEN: []}
    assert await room.log() == [
        ("email", "Ada@example.com", "create_unverified", "app"), ("email", "ada@example.com", "verify", "identity"),
    ]
    assert await room.contact_counts() == {"created/email:unverified:enabled:app": 1, "verified/email:identity": 1}


@on_sqlite
async def test_a_number_can_be_turned_off_and_on_and_removed(room: Room) -> None:
    await room.person(ADA, NOON)
    await room.contacts.add_phone(ADA, "+1 555 555 0123", verified=True, why="verify")
    assert await room.heard() == [(ADA, "sms", "phone_verify_finish")]
    changes = [await room.contacts.set_phone_notifications(ADA, "+15555550123", on) for on in (True, False, False)]
    assert changes == [False, True, False]
    assert await room.contacts.phones_of([ADA]) == {ADA: []}
    assert await room.heard() == [(ADA, "sms", "user")]
    assert await room.contacts.set_phone_notifications(ADA, "+15555550123", True)
    assert await room.contacts.phones_of([ADA]) == {ADA: ["+15555550123"]}
    assert await room.heard() == [(ADA, "sms", "phone_verify_finish")]
    assert [await room.contacts.remove_phone(ADA, "+15555550123") for _ in range(2)] == [True, False]
    assert await room.heard() == [(ADA, "sms", "user")]
    assert await room.contacts.listed_phones(ADA) == []
    with pytest.raises(NotFound):
        await room.contacts.set_phone_notifications(ADA, "+15555550123", True)
    assert [entry[2] for entry in await room.log()] == ["create_verified", "disable_notifs", "enable_notifs", "delete"]


async def test_of_many_who_add_the_same_address_at_once_one_does(room: Room) -> None:
    await room.person(ADA, NOON)
    added = await asyncio.gather(*(room.contacts.add_email(ADA, "ada@example.com", verified=True) for _ in range(8)))
    assert sorted(each.value for each in added) == ["created"] + ["known"] * 7
    assert await room.contact_counts() == {"created/email:verified:enabled:app": 1}


@on_sqlite
async def test_what_cannot_be_is_refused_and_leaves_nothing(room: Room) -> None:
    await room.person(ADA, NOON)
    with pytest.raises(Invalid):
        await room.contacts.add_email(ADA, "ada at example.com")
    with pytest.raises(Invalid):
        await room.contacts.add_phone(ADA, "12")
    with pytest.raises(NotFound):
        await room.contacts.add_email(BEN, "ben@example.com")
    for number in range(MOST_ADDRESSES):
        await room.contacts.add_email(ADA, f"ada{number}@example.com")
    with pytest.raises(Conflict):
        await room.contacts.add_email(ADA, "one-more@example.com")
    assert len(await room.contacts.listed_emails(ADA)) == MOST_ADDRESSES == len(await room.log())


async def test_many_people_are_described_and_found_in_few_queries(room: Room) -> None:
    ada = (await room.users.ensure("google", "g-1", given_name="Ada", timezone="Asia/Tokyo")).sub
    subs = [ada, *[UserSub(await room.person(f"user_{number}", NOON)) for number in range(250)]]
    found = await room.contacts.described([*subs, BEN])
    assert len(found) == 251 and BEN not in found
    assert found[ada] == Described("Ada", "Asia/Tokyo", NOON) and found[subs[7]] == Described("", None, NOON)
    await room.contacts.add_email(subs[200], "late@example.com", verified=True)
    emails = await room.contacts.emails_of(subs)
    assert len(emails) == 251 and emails[subs[200]] == ["late@example.com"]


async def test_whoever_is_erased_leaves_no_contact_and_no_log(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
        await room.contacts.add_email(sub, "both@example.com", verified=True)
        await room.contacts.add_phone(sub, "+15555550123", verified=True)
    await room.tokens.register(ADA, TOKEN, "ios")
    await room.timezones.set(ADA, "Asia/Tokyo")
    await room.contacts.add_email(ADA, "ada@example.com")
    for address in ("both@example.com", "Ada@example.com"):
        await room.suppression.email_failed(address, "Bounce", "Transient/General")
    await room.suppression.suppress_email("both@example.com", "Complaint")
    await room.heard()
    await room.contacts.erase(ADA)
    assert await room.heard() == [(ADA, "erased")]
    assert not await TIMEZONE_SAID.at(ADA).exists(room.valkey)
    async with room.database.reading() as sql:
        left = [await sql.scalar(select(func.count()).select_from(table)) for table in (
            USER_EMAIL_ADDRESSES, USER_PHONE_NUMBERS, USER_PUSH_TOKENS, CONTACT_METHOD_LOG, USER_TIMEZONE_LOG)]
        failed = list(await sql.scalars(select(EMAIL_FAILURES.c.email_address)))
    assert left == [1, 1, 0, 2, 0] and failed == ["both@example.com"], "what Ben has stays"
    assert await room.suppression.emails(["both@example.com"]) == {"both@example.com"}
    counts = await room.contact_counts()
    assert {event: amount for event, amount in counts.items() if event.startswith("deleted")} == {
        "deleted/email:account": 2, "deleted/phone:account": 1, "deleted/push:account": 1,
        "deleted_due_to_user_deletion": 1,
    }
    with pytest.raises(NotFound):
        await room.contacts.erase(UserSub("user_nobody"))


@on_sqlite
async def test_a_change_is_counted_once_however_often_its_job_runs(wide_room: Room) -> None:
    room = wide_room
    await room.person(ADA, NOON)
    await room.contacts.add_email(ADA, "ada@example.com", verified=True)
    await room.settle(times=3)
    assert await room.contact_counts() == {"created/email:verified:enabled:app": 1}
    assert room.told == [(ADA, "email", "email_added")] * 3
