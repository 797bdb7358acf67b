"""Who is not written to, and why: bounces, complaints, stop and start."""

import asyncio

import pytest
from sqlalchemy import func, select

from keystead.ids import UserSub
from keystead.members.contact_tables import EMAIL_FAILURES, SUPPRESSED_PHONE_NUMBERS, UNSUBSCRIBED_EMAILS_LOG

from .room import NOON, Room, on_sqlite

ADA, BEN = UserSub("user_ada"), UserSub("user_ben")
NUMBER = "+15555550123"
DAY = 86400.0


async def two_people(room: Room) -> None:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
        await room.contacts.add_email(sub, "Both@Example.com", verified=True)
        await room.contacts.add_phone(sub, NUMBER, verified=True)
    await room.heard()


async def test_a_suppressed_address_is_so_in_any_spelling_and_for_everybody(room: Room) -> None:
    await two_people(room)
    assert [await room.suppression.suppress_email(address, "Complaint") for address in (
        "both@example.COM", "BOTH@example.com")] == [True, False]
    assert await room.heard() == [(ADA, "email", "unreachable"), (BEN, "email", "unreachable")]
    assert await room.suppression.emails(["BOTH@EXAMPLE.COM", "x@example.com"]) == {"BOTH@EXAMPLE.COM"}
    assert await room.contacts.emails_of([ADA, BEN]) == {ADA: [], BEN: []}
    assert [contact.suppressed for contact in await room.contacts.listed_emails(ADA)] == [True]
    assert [await room.suppression.lift_email("both@example.com") for _ in range(2)] == [True, False]
    assert await room.contacts.emails_of([ADA]) == {ADA: ["Both@example.com"]}
    assert await room.heard() == [(ADA, "email", "email_added"), (BEN, "email", "email_added")]


@on_sqlite
async def test_many_addresses_are_checked_at_once(room: Room) -> None:
    for number in range(0, 300, 7):
        await room.suppression.suppress_email(f"p{number}@example.com", "Admin")
    asked = [f"P{number}@example.com" for number in range(300)]
    assert await room.suppression.emails(asked) == {f"P{number}@example.com" for number in range(0, 300, 7)}
    assert await room.suppression.emails([]) == set() == await room.suppression.phones([])


async def test_a_bounce_that_may_pass_suppresses_only_the_third_time_in_thirty_days(room: Room) -> None:
    await two_people(room)
    failed = room.suppression.email_failed
    transient = "Transient/MailboxFull"
    assert not await failed("both@example.com", "Bounce", transient, cause="em_1")
    assert not await failed("both@example.com", "Bounce", transient, cause="em_1"), "the same news again"
    room.clock.advance(31 * DAY)
    assert not await failed("both@example.com", "Bounce", transient, cause="em_2")
    assert not await failed("BOTH@example.com", "Bounce", transient, cause="em_3")
    assert not await room.suppression.emails(["both@example.com"]) and await room.heard() == []
    assert await failed("both@example.com", "Bounce", transient, cause="em_4")
    assert await room.heard() == [(ADA, "email", "unreachable"), (BEN, "email", "unreachable")]
    async with room.database.reading() as sql:
        assert await sql.scalar(select(func.count()).select_from(EMAIL_FAILURES)) == 4


async def test_bounces_of_the_same_moment_are_all_counted(room: Room) -> None:
    await two_people(room)
    await room.suppression.email_failed("both@example.com", "Bounce", "Transient/General", cause="em_0")
    failed = await asyncio.gather(*(
        room.suppression.email_failed("both@example.com", "Bounce", "Transient/General", cause=f"em_{number}")
        for number in (1, 2)
    ))
    assert sorted(failed) == [False, True] and await room.suppression.emails(["both@example.com"])


@on_sqlite
@pytest.mark.parametrize(("kind", "extra"), [("Bounce", "Permanent/General"), ("Complaint", "abuse"), ("Bounce", "")])
async def test_other_failures_suppress_at_once(room: Room, kind: str, extra: str) -> None:
    await two_people(room)
    assert [await room.suppression.email_failed("both@example.com", kind, extra, cause="em_1") for _ in range(2)] == [
        True, True]
    assert await room.suppression.emails(["both@example.com"])
    assert len(await room.heard()) == 2, "told once"


async def test_stop_and_start(room: Room) -> None:
    await room.person(ADA, NOON)
    await room.contacts.add_phone(ADA, NUMBER, verified=False)
    assert [await room.suppression.suppress_phone(NUMBER, "Stop") for _ in range(2)] == [True, False]
    assert await room.suppression.phones([NUMBER, "+15555550124"]) == {NUMBER}
    assert await room.heard() == [(ADA, "sms", "sms_stop")]
    assert await room.suppression.lift_phone(NUMBER)
    assert await room.heard() == [(ADA, "sms", "sms_start")]
    assert await room.contacts.phones_of([ADA]) == {ADA: [NUMBER]}, "who texts from a number has proved it"
    assert await room.suppression.lift_phone(NUMBER) and await room.heard() == [], "nothing changes any more"
    assert (await room.contact_counts())["verified/phone:sms_start"] == 1


@on_sqlite
async def test_start_from_a_number_of_two_people_or_of_nobody_changes_nothing(room: Room) -> None:
    await two_people(room)
    await room.suppression.suppress_phone(NUMBER, "Unreachable", {"identifier": "ApplicationErrorOther"})
    assert await room.heard() == [(ADA, "sms", "unreachable"), (BEN, "sms", "unreachable")]
    assert not await room.suppression.lift_phone(NUMBER) and not await room.suppression.lift_phone("+15555550199")
    assert await room.suppression.phones([NUMBER]) == {NUMBER} and await room.heard() == []
    async with room.database.reading() as sql:
        row = (await sql.execute(select(SUPPRESSED_PHONE_NUMBERS))).one()
    assert (row.reason, row.reason_details) == ("Unreachable", {"identifier": "ApplicationErrorOther"})


async def test_an_unsubscription_by_a_link_is_logged_with_its_device(room: Room) -> None:
    await two_people(room)
    device = await room.device()
    for visitor in (device, None, "v_unknown"):
        await room.suppression.unsubscribe_email("both@example.com", link_code="abc", visitor_uid=visitor)
    assert await room.heard() == [(ADA, "email", "user"), (BEN, "email", "user")]
    rows = UNSUBSCRIBED_EMAILS_LOG.c
    async with room.database.reading() as sql:
        logged = await sql.execute(select(rows.link_code, rows.visitor_known, rows.suppressed).order_by(rows.id))
        assert logged.all() == [("abc", True, True), ("abc", False, False), ("abc", False, False)]


@on_sqlite
async def test_a_bounce_from_a_domain_in_other_letters_is_known_by_its_address(room: Room) -> None:
    """Mail goes to the form that servers know, so news of it name that."""
    await room.person("user_ada", NOON)
    await room.contacts.add_email(UserSub("user_ada"), "ada@bücher.example", verified=True)
    await room.suppression.email_failed("ada@xn--bcher-kva.example", "Bounce", "Permanent/General")
    assert await room.contacts.emails_of([UserSub("user_ada")]) == {"user_ada": []}
    assert await room.suppression.emails(["Ada@bücher.example"]) == {"Ada@bücher.example"}
