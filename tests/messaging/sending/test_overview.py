"""What those who look after the rooms are told."""

import pytest

from keystead.engine import Valkey
from keystead.messaging.email.overview import OVERVIEW as EMAIL
from keystead.messaging.push.overview import OVERVIEW as PUSH
from keystead.messaging.sending import OverviewReader
from keystead.messaging.sms import Sms
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.sms.overview import OVERVIEW as SMS
from keystead.messaging.sms.stats import SEND_RUN
from keystead.reminders.keys import QUEUED
from keystead.reminders.models import DueReminder
from keystead.reminders.overview import OVERVIEW as REMINDERS
from keystead.testing.clock import MovableClock

NOW = 1_800_000_000.0


@pytest.mark.parametrize("overview", [PUSH, SMS, EMAIL, REMINDERS], ids=lambda overview: overview.room)
async def test_an_empty_room_has_an_answer_to_everything(server: Valkey, overview):
    reader = OverviewReader(server, MovableClock(now=NOW))
    for name in overview.names:
        told = await reader.read(overview, name)
        if name.startswith("last_"):
            assert told in ({}, {"in_purgatory": 0})
        else:
            assert told["length"] == 0 and told["oldest_at"] is None and not told.get("num_overdue")


async def test_what_waits_is_counted_and_its_age_told(server: Valkey):
    clock = MovableClock(now=NOW)
    reader = OverviewReader(server, clock)
    for number in range(3):
        await Sms(server, clock).queue(f"+1415555010{number}", "hello")
        clock.advance(10)
    assert await reader.read(SMS, "send_queue_info") == {"length": 3, "oldest_at": NOW}
    await QUEUED.schedule(server, DueReminder("udr_a", 20_000), NOW - 5)
    await QUEUED.schedule(server, DueReminder("udr_b", 20_000), NOW + 500)
    told = await reader.read(REMINDERS, "queued_info")
    assert told == {"length": 2, "oldest_at": NOW - 5, "num_overdue": 1}


async def test_a_run_is_told_with_what_its_workers_hold(server: Valkey):
    clock = MovableClock(now=NOW)
    await Sms(server, clock).queue("+14155550100", "hello")
    await SENDING.work.worker("one").take(server, 1, now=NOW)
    await SEND_RUN.at().update(server, started_at=NOW, attempted=7)
    told = await OverviewReader(server, clock).read(SMS, "last_send_job")
    assert (told["attempted"], told["started_at"], told["in_purgatory"]) == (7, NOW, 1)


async def test_an_element_that_does_not_decode_hides_nothing_but_its_age(valkey: Valkey):
    await SENDING.work.push_raw(valkey, b"broken")
    told = await OverviewReader(valkey, MovableClock(now=NOW)).read(SMS, "send_queue_info")
    assert told == {"length": 1, "oldest_at": None}
