"""One click: signed, without a log-in, for the address it was made for and no other."""

from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import select

from keystead.edge import TicketExpired, TicketTampered
from keystead.members.contact_tables import SUPPRESSED_EMAILS, UNSUBSCRIBED_EMAILS_LOG

from .room import ADA, Room, on_sqlite

pytestmark = on_sqlite


def token_of(room: Room, address: str = ADA) -> str:
    return parse_qs(urlsplit(room.unsubscribing.link(address)).query)["token"][0]


async def test_a_click_suppresses_the_address_and_is_logged(room: Room) -> None:
    token = token_of(room)
    assert not await room.suppressed.has(ADA)
    assert await room.unsubscribing.unsubscribe(token) is True
    assert await room.suppressed.has(ADA)
    assert await room.unsubscribing.unsubscribe(token) is False, "again it changes nothing"
    async with room.database.reading() as sql:
        listed = (await sql.execute(select(SUPPRESSED_EMAILS.c.email_address, SUPPRESSED_EMAILS.c.reason))).all()
        logged = (await sql.execute(select(UNSUBSCRIBED_EMAILS_LOG.c.email_address,
                                           UNSUBSCRIBED_EMAILS_LOG.c.suppressed))).all()
    assert [tuple(row) for row in listed] == [(ADA, "User")]
    assert [tuple(row) for row in logged] == [(ADA, True), (ADA, False)]


async def test_a_link_that_was_not_made_here_does_nothing(room: Room) -> None:
    other = room.tickets.issue("something else", ADA, lasts_seconds=60)
    for token in ("", "x", other, token_of(room)[:-1], token_of(room) + "x"):
        with pytest.raises(TicketTampered):
            await room.unsubscribing.unsubscribe(token)
    old = token_of(room)
    room.later(400 * 86_400)
    with pytest.raises(TicketExpired):
        await room.unsubscribing.unsubscribe(old)
    assert not await room.suppression.emails([ADA])


async def test_without_an_address_of_our_own_there_are_no_headers(room: Room) -> None:
    assert len(room.unsubscribing.headers(ADA)) == 2
    room.unsubscribing._public_url = ""
    assert room.unsubscribing.headers(ADA) == ()
