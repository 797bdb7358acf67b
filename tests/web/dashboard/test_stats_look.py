"""The statistics at a glance, from a real server and database."""

from keystead import dates
from keystead.content.stats import JOURNEY_VIEWS
from keystead.members.stats import CONVERSION, DAILY_ACTIVE, NEW_USERS, RETENTION, USERS
from keystead.messaging.sms.stats import SENDS
from keystead.web.dashboard.stats_look import StatsReader, cohorts_card
from keystead.web.dashboard.stats_range import StatsRange

from .stats_given import BACK, grid

WEEK = StatsRange(days=7)


def reader(running, shown=WEEK):
    return StatsReader(running.charts, running.valkey, running.clock, shown)


async def test_installation_that_never_counted_anything_is_bare(running):
    look = await reader(running)(None)
    assert look.is_bare and len(look.never) == len(list(running.catalogue))


async def test_each_kind_has_its_place(running):
    valkey, now = running.valkey, running.clock.now()
    today = SENDS.day_of(now)
    await SENDS.incr(valkey, "queued", amount=3, unix_date=today)
    await SENDS.incr(valkey, "succeeded_pending", "sent", amount=2, unix_date=today - 1)
    await USERS.increment(valkey, at=now)
    await NEW_USERS.increment(valkey, at=now)
    await DAILY_ACTIVE.add(valkey, "ada", "bob", at=now)
    await RETENTION.join(valkey, "ada", day=today - 3)
    await RETENTION.active(valkey, "ada", joined_day=today - 3, at=now)
    await JOURNEY_VIEWS.viewed(valkey, "Sleep", "ada", at=now)
    await CONVERSION.add(valkey, [("utm_source=a", "visits", 4)], at=now)
    look = await reader(running)(None)
    assert {(tile.name, tile.total, sum(tile.days)) for tile in look.tiles} == {
        ("users", 1, 0), ("daily_new_users", None, 1), ("daily_active_users", None, 2)
    }
    cards = {card.name: card for card in look.cards}
    texts = cards["sms_send"]
    assert (texts.room, texts.total, texts.days[-2:], texts.parts) == (
        "messaging.sms", 5, (2, 3), (("queued", "3"), ("succeeded_pending", "2")))
    assert cards["journey_sessions"].number == "1" and cards["journey_sessions"].parts == (("Sleep", "1"),)
    assert cards["visitors"].number == "4" and cards["visitors"].unit.startswith("visits on ")
    assert cards["retention"].total == 1
    assert not look.silent and "sms_events" in look.never and look.zones == (dates.LOS_ANGELES,)


async def test_second_look_sees_what_was_counted_meanwhile(running):
    read, today = reader(running), SENDS.day_of(running.clock.now())
    await SENDS.incr(running.valkey, "queued", unix_date=today)
    first = await read(None)
    assert await read(first) == first
    await SENDS.incr(running.valkey, "queued", amount=4, unix_date=today)
    assert [card.total for card in (await read(first)).cards] == [5]


async def test_family_that_was_quiet_on_these_days_is_not_called_new(running):
    today = SENDS.day_of(running.clock.now())
    await SENDS.incr(running.valkey, "queued", unix_date=today - 20)
    look = await reader(running)(None)
    assert look.silent == ("sms_send",) and not look.cards and not look.is_bare


async def test_foreign_key_under_one_name_hides_no_other(running):
    now = running.clock.now()
    await SENDS.incr(running.valkey, "queued", at=now)
    await NEW_USERS.increment(running.valkey, at=now)
    await running.valkey.delete(f"stats:sms_send:daily:{SENDS.day_of(now)}")
    await running.valkey.set(f"stats:sms_send:daily:{SENDS.day_of(now)}", "of another program")
    look = await reader(running)(None)
    [broken] = look.cards
    assert broken.name == "sms_send" and broken.number == "cannot be read" and "WRONGTYPE" in broken.purpose
    assert [tile.name for tile in look.tiles] == ["daily_new_users"]


def test_retention_shows_the_rate_in_the_middle():
    card = cohorts_card(BACK, grid())
    assert (card.number, card.unit, card.total) == ("25.0 %", "after 7 days", 50)
    assert card.parts == (("same day", "75.0 %"),)
