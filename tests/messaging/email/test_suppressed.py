"""Whether an address is suppressed, whatever its case."""

from keystead.messaging.email.suppressed import Suppressed

from .room import ADA, Room, on_sqlite

pytestmark = on_sqlite


async def test_an_address_is_found_on_the_list_whatever_its_case(room: Room) -> None:
    suppressed = Suppressed(room.suppression, room.clock)
    assert not await suppressed.has(ADA)
    await room.suppression.suppress_email(ADA.upper(), "Bounce")
    assert not await suppressed.has(ADA), "that it is free is believed for a while"
    suppressed.forget(ADA.title())
    assert await suppressed.has(ADA) and await suppressed.has(ADA.title())
    assert not await suppressed.has("grace@example.com")
