"""People behind reminders."""

from keystead.engine import Valkey
from keystead.reminders.readers import Readers
from keystead.store import Database
from tests.reminders.test_assigner import Room


async def test_the_person_behind_a_reminder_and_whether_they_took_part(valkey: Valkey, database: Database) -> None:
    room, readers = Room(valkey, database, "2026-03-02 05:00"), Readers(database)
    await room.remind("udr_a", zone="Asia/Tokyo", channel="push", joined_at=5.0)
    found = await readers.of(["udr_a", "udr_gone"])
    assert list(found) == ["udr_a"]
    reader = found["udr_a"]
    assert (reader.sub, reader.channel, reader.timezone, reader.joined_at) == ("of_udr_a", "push", "Asia/Tokyo", 5.0)
    assert reader.was_engaged is None
    for engaged in (True, True, False):
        await readers.store_engaged({reader.user_id: engaged, reader.user_id + 1000: True})
        assert (await readers.of(["udr_a"]))["udr_a"].was_engaged is engaged
