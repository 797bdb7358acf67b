"""Whoever was forgotten is still not written to, and nobody can read from the lists who that was."""

from io import BytesIO

from sqlalchemy import inspect, select, text

from keystead.ids import UserSub
from keystead.members import Contacts, ContactsImport, Suppression
from keystead.members.contact_tables import SUPPRESSED_EMAILS, SUPPRESSED_PHONE_NUMBERS, UNSUBSCRIBED_EMAILS_LOG
from keystead.members.veil import Veil

from .room import NOON, Room, on_sqlite

ADA, BEN, EVE = UserSub("user_ada"), UserSub("user_ben"), UserSub("user_eve")
ADDRESS, NUMBER = "Ada.Lovelace@Example.com", "+15555550123"


async def forgotten(room: Room) -> None:
    """Somebody who wanted no email and no texts, and was then forgotten."""
    await room.person(ADA, NOON)
    await room.contacts.add_email(ADA, ADDRESS, verified=True)
    await room.contacts.add_phone(ADA, NUMBER, verified=True)
    await room.suppression.unsubscribe_email(ADDRESS, link_code="code")
    await room.suppression.suppress_phone(NUMBER, "Stop", {"from": NUMBER})
    await room.contacts.erase(ADA)


async def everything(room: Room) -> str:
    async with room.database.reading() as sql:
        names = await sql.run_sync(lambda connection: inspect(connection).get_table_names())
        rows = [(await sql.execute(text(f'SELECT * FROM "{name}"'))).all() for name in names]
    return str(rows).lower()


async def test_no_table_holds_the_address_or_number_of_who_was_forgotten(room: Room) -> None:
    await forgotten(room)
    held = await everything(room)
    assert "ada.lovelace" not in held and NUMBER not in held
    async with room.database.reading() as sql:
        log = (await sql.execute(select(UNSUBSCRIBED_EMAILS_LOG))).one()
    assert log.suppressed and log.visitor_id is None, "that somebody unsubscribed stays known"


async def test_who_was_forgotten_is_still_not_written_to(room: Room) -> None:
    await forgotten(room)
    assert await room.suppression.emails([ADDRESS.upper(), "x@example.com"]) == {ADDRESS.upper()}
    assert await room.suppression.phones([NUMBER, "+15555550199"]) == {NUMBER}


async def test_an_address_that_is_given_again_is_known_to_be_suppressed(room: Room) -> None:
    await forgotten(room)
    await room.person(BEN, NOON)
    await room.contacts.add_email(BEN, ADDRESS, verified=True)
    await room.contacts.add_phone(BEN, NUMBER, verified=True)
    assert await room.contacts.emails_of([BEN]) == {BEN: []} and await room.contacts.phones_of([BEN]) == {BEN: []}
    assert await room.suppression.lift_phone(NUMBER) and await room.suppression.lift_email(ADDRESS)
    assert await room.contacts.phones_of([BEN]) == {BEN: [NUMBER]}
    assert await room.suppression.emails([ADDRESS]) == set() == await room.suppression.phones([NUMBER])


async def test_an_address_that_comes_with_a_file_is_known_to_be_suppressed(room: Room) -> None:
    await forgotten(room)
    await room.person(BEN, NOON)
    lines = f"user_sub,email,phone,verified\n{BEN},{ADDRESS},{NUMBER},yes\n{BEN},other@example.com,,yes\n"
    imported = await ContactsImport(room.database, room.outbox, room.clock).run(BytesIO(lines.encode()))
    assert imported.created == 3
    assert await room.contacts.emails_of([BEN]) == {BEN: ["other@example.com"]}
    assert await room.contacts.phones_of([BEN]) == {BEN: []}


@on_sqlite
async def test_it_can_be_suppressed_again_and_lifted_whole(room: Room) -> None:
    await forgotten(room)
    await room.suppression.suppress_email(ADDRESS, "Complaint")
    await room.person(BEN, NOON)
    await room.contacts.add_email(BEN, ADDRESS, verified=True)
    async with room.database.reading() as sql:
        assert list(await sql.scalars(select(SUPPRESSED_EMAILS.c.folded))) == [ADDRESS.lower()]
    assert await room.suppression.lift_email(ADDRESS)
    assert await room.suppression.emails([ADDRESS]) == set()


@on_sqlite
async def test_what_another_person_has_stays_as_it_is(room: Room) -> None:
    await room.person(EVE, NOON)
    await room.contacts.add_email(EVE, ADDRESS, verified=True)
    await room.contacts.add_phone(EVE, NUMBER, verified=True)
    await forgotten(room)
    async with room.database.reading() as sql:
        assert list(await sql.scalars(select(SUPPRESSED_EMAILS.c.folded))) == [ADDRESS.lower()]
        assert list(await sql.scalars(select(SUPPRESSED_PHONE_NUMBERS.c.phone_number))) == [NUMBER]


@on_sqlite
async def test_hashes_are_those_of_the_installation(room: Room) -> None:
    mine, other = Veil(b"a" * 32), Veil(b"b" * 32)
    assert mine.of("x") == Veil(b"a" * 32).of("x") != other.of("x")
    await room.person(ADA, NOON)
    contacts = Contacts(room.database, room.outbox, room.clock, mine)
    await contacts.add_email(ADA, ADDRESS)
    await Suppression(room.database, room.outbox, room.clock, mine).suppress_email(ADDRESS, "User")
    await contacts.erase(ADA)
    assert await Suppression(room.database, room.outbox, room.clock, mine).emails([ADDRESS]) == {ADDRESS}
    assert await Suppression(room.database, room.outbox, room.clock, other).emails([ADDRESS]) == set()
