"""What lies in Valkey of reminders: the same is always the same bytes, and yesterday's is read today."""

from keystead.reminders.keys import PROGRESS, QUEUED
from keystead.reminders.models import DueReminder, Progress


def test_a_reminder_of_a_day_is_one_member_with_its_fields_in_order() -> None:
    codec = QUEUED.due_key.codec
    assert codec.encode(DueReminder("udr_1", 20514)) == b'{"uid":"udr_1","unix_date":20514}'
    assert codec.decode(b'{"uid":"udr_1","unix_date":20514,"later":true}') == DueReminder("udr_1", 20514)


async def test_progress_reads_as_it_was_written(valkey) -> None:  # type: ignore[no-untyped-def]
    at = PROGRESS.at("America/Los_Angeles", 20514)
    await at.set(valkey, Progress(21600, "udr_1", 1))
    assert await valkey.hgetall(at.name(valkey.layout)) == {
        b"start_time": b"21600", b"uid": b"udr_1", b"finished": b"1"}
    assert await at.get(valkey) == Progress(21600, "udr_1", 1)
