"""Why somebody gets no reminder, asked of a whole room: wishes, addresses, times and what was sent."""

import pytest

from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches import History
from keystead.messaging.touches.keys import DAY_COUNT
from keystead.reminders.effective import EVERY_DAY, TimeRange
from keystead.reminders.keys import QUEUED, SENT
from keystead.reminders.models import DueReminder
from keystead.reminders.rows import reminder_uid
from keystead.reminders.why import Explaining, Why
from keystead.settings import MessagingSettings, RemindersSettings
from keystead.store import Database

from ..members.room import NOON
from .people import ADA, BEN, EMAIL, NUMBER, People, reachable_ada

ANYTIME = TimeRange("", 0, 86_399)


class Asked(People):
    async def why(self, sub: UserSub = ADA, **asked: int) -> Why:
        explaining = Explaining(
            self.valkey, self.database, self.clock, self.contacts, History(self.valkey, self.database),
            RemindersSettings(), MessagingSettings(),
        )
        return await explaining.why(sub, **asked)


def codes(why: Why) -> dict[str, str]:
    return {each.channel: each.reasons[0].code for each in why.channels}


async def test_somebody_without_an_address_cannot_be_reached(valkey: Valkey, database: Database):
    room = Asked(valkey, database)
    await room.person(BEN, NOON)
    why = await room.why(BEN)
    assert set(codes(why).values()) == {"no_contact"} and why.answer.startswith("They cannot be reached")
    with pytest.raises(NotFound):
        await room.why(UserSub("user_nobody"))
    with pytest.raises(Invalid):
        await room.why(BEN, days_back=4)


async def test_each_channel_has_its_own_reason_and_the_one_that_came_furthest_is_first(
    valkey: Valkey, database: Database
):
    room = Asked(valkey, database)
    await reachable_ada(room)
    room.clock.advance(2 * 86_400)
    await room.suppression.suppress_phone(NUMBER, "Stop")
    await room.settings.update(ADA, mask=0, time_range=ANYTIME, channel="email")
    await room.settings.update(ADA, mask=EVERY_DAY, time_range=ANYTIME, channel="push")
    await room.settle()
    why = await room.why()
    assert codes(why) == {"push": "time_not_chosen", "email": "settings_off", "sms": "suppressed"}
    assert why.channels[0].channel == "push" and why.answer.startswith("It may still come, by push: their window is")
    await room.contacts.set_email_notifications(ADA, EMAIL, False)
    await room.settle()
    assert [reason.code for reason in (await room.why()).channels[1].reasons] in (
        ["turned_off", "settings_off"], ["suppressed"])


async def test_newcomers_and_those_whose_time_is_chosen(valkey: Valkey, database: Database):
    room = Asked(valkey, database)
    await reachable_ada(room)
    await room.settings.update(ADA, mask=EVERY_DAY, time_range=ANYTIME, channel="all")
    await room.settle()
    assert set(codes(await room.why()).values()) == {"joined_too_recently"}
    room.clock.advance(86_400)
    why = await room.why()
    await QUEUED.schedule(valkey, DueReminder(reminder_uid(ADA, "sms"), why.day), room.clock.now() + 600)
    await SMS.pause(valkey)
    await DAY_COUNT.at(ADA, "sms", why.day).increment(valkey, 20)
    sms = next(each for each in (await room.why()).channels if each.channel == "sms")
    assert [reason.code for reason in sms.reasons] == ["not_yet_due", "daily_cap", "channel_paused"]


async def test_what_was_dealt_with_is_told_for_its_day_only(valkey: Valkey, database: Database):
    room = Asked(valkey, database)
    await reachable_ada(room)
    await room.settle()
    room.clock.advance(3 * 86_400)
    yesterday = (await room.why(days_back=1)).day
    await SENT.at(yesterday).add(valkey, reminder_uid(ADA, "email"))
    assert codes(await room.why(days_back=1))["email"] == "skipped"
    assert codes(await room.why())["email"] != "skipped"
