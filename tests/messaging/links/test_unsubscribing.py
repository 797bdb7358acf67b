"""An unsubscribe link permits to say that an address gets no more email; no other does."""

import pytest

from keystead.jobs import JobBook
from keystead.members import Suppression
from keystead.messaging.links import Style
from keystead.messaging.links.unsubscribing import InvalidCode, Unsubscribing
from keystead.store import SqlOutbox

from .room import Room


def suppression(room: Room) -> Suppression:
    return Suppression(room.database, SqlOutbox(room.database, room.valkey, JobBook()), room.clock)


async def test_only_an_unsubscribe_link_permits_it_and_no_click_is_counted(room: Room) -> None:
    listed = suppression(room)
    forgotten: list[str] = []
    unsubscribing = Unsubscribing(room.links, room.database, listed, forgotten.append)
    home, permits = await room.link(), await room.link("tch_1", "unsubscribe", Style.LONG)
    for code in (home.code, "nothing", "a:b"):
        with pytest.raises(InvalidCode):
            await unsubscribing.unsubscribe(code, ["ann@example.com"])
    assert await listed.emails(["ann@example.com"]) == set() and forgotten == []
    for _ in range(2):
        await unsubscribing.unsubscribe(permits.code, ["ann@example.com"], visitor_uid="v_device")
    assert await listed.emails(["Ann@Example.com", "else@example.com"]) == {"Ann@Example.com"}
    assert forgotten == ["ann@example.com"] * 2, "what was believed of the address is not true any more"
    assert await room.counted() == {"created": 2}


async def test_the_address_is_known_from_the_message_wherever_the_link_is(room: Room) -> None:
    unsubscribing = Unsubscribing(room.links, room.database, suppression(room))
    link = await room.link("tch_1", "unsubscribe")
    target = await room.links.resolve(link.code)
    assert target is not None
    assert await unsubscribing.addresses(target) == []
    await room.touch("tch_1", "ann@example.com")
    assert await unsubscribing.addresses(target) == ["ann@example.com"]
