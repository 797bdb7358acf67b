"""Reminders become touches: one for each day, whatever dies and whoever edits."""

import pytest
from sqlalchemy import delete

from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import StopReason
from keystead.messaging.links import Links
from keystead.messaging.links.keys import BUFFER
from keystead.messaging.touches import Touch, Touches
from keystead.messaging.touches.keys import TO_SEND
from keystead.patterns import Once
from keystead.reminders.keys import QUEUED, SEND_LOCK, SENT
from keystead.reminders.models import DueReminder
from keystead.reminders.plans import ByEngagement, PersonFacts
from keystead.reminders.sender import Sender
from keystead.reminders.stats import SEND_RUN
from keystead.reminders.stats import SENT as COUNTED
from keystead.reminders.tables import REMINDERS
from keystead.store import Database
from tests.reminders.test_assigner import Room, day

TODAY = day("2026-03-02")
URL = "https://app.example.com"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Killed(BaseException):
    """The process is gone."""


class DyingTouches(Touches):
    """Dies when the touches were queued, and before anybody heard of it."""

    alive = False

    async def queue_many(self, touches: list[Touch]) -> list[Once]:
        done = await super().queue_many(touches)
        if not self.alive:
            raise Killed
        return done


class Post(Room):
    """Reminders that are due, and a sender of them."""

    def __init__(self, valkey: Valkey, database: Database, touches: Touches | None = None, **options: object) -> None:
        super().__init__(valkey, database, "2026-03-02 09:00")
        self.touches = touches or Touches(valkey, self.clock)
        self.links = Links(valkey, database, self.clock)
        self.sender = Sender(valkey, database, self.clock, self.touches, self.links, URL, **options)  # type: ignore[arg-type]

    async def due(self, uid: str, channel: str = "sms", *, late_seconds: float = 0.0) -> None:
        await self.remind(uid, channel=channel)
        await QUEUED.schedule(self.valkey, DueReminder(uid, TODAY), self.clock.now() - late_seconds)

    async def sent(self) -> list[Touch]:
        return await TO_SEND.queue.range(self.valkey, 0, -1)

    async def identities(self) -> dict[str, int]:
        counts = (await COUNTED.read(self.valkey, TODAY)).counts
        assert counts["sends_attempted"] == counts["sends_lost"] + counts["skipped_sending"] + counts["sent"]
        return counts


async def test_a_due_reminder_becomes_a_touch_with_links_of_its_channel(server: Valkey, database: Database) -> None:
    post = Post(server, database)
    for channel in ("sms", "email", "push"):
        await post.due(f"udr_{channel}", channel)
    ended = await post.sender.run()
    assert ended is not None and ended.stop_reason is StopReason.LIST_EXHAUSTED
    touches = {touch.channel: touch for touch in await post.sent()}
    assert {touch.touch_point_event_slug for touch in touches.values()} == {"daily_reminder"}
    text, mail, card = touches["sms"], touches["email"], touches["push"]
    assert text.event_parameters["url"].startswith("app.example.com/a/")
    assert text.event_parameters["name"] == "there" and text.event_parameters["time_of_day"] == "morning"
    assert mail.event_parameters["url"].startswith(f"{URL}/l/")
    assert len(mail.event_parameters["unsubscribe_url"]) > len(f"{URL}/l/") + 80, "its code is a secret"
    assert card.success_callback is None and card.failure_callback is None
    assert text.success_callback is not None and text.success_callback.name == "touch.persist_links"
    assert text.failure_callback is not None and text.failure_callback.name == "touch.abandon_links"
    codes = [*text.success_callback.kwargs["codes"], *mail.success_callback.kwargs["codes"]]  # type: ignore[union-attr]
    assert sorted(codes) == sorted([code for code, _ in await BUFFER.at().range(server)])
    assert await QUEUED.size(server) == 0
    assert (await post.identities())["links"] == 3
    run = await SEND_RUN.at().get(server)
    assert run is not None and (run.attempted, run.sms, run.email, run.push, run.links) == (3, 1, 1, 1, 3)


async def test_late_and_lost_reminders_are_counted_and_not_sent(valkey: Valkey, database: Database) -> None:
    post = Post(valkey, database)
    await post.due("udr_late", "email", late_seconds=3601)
    await post.due("udr_gone")
    await post.due("udr_good", late_seconds=3500)
    async with database.transaction() as sql:
        await sql.execute(delete(REMINDERS).where(REMINDERS.c.uid == "udr_gone"))
    await post.sender.run()
    assert [touch.user_sub for touch in await post.sent()] == ["of_udr_good"]
    counts = await post.identities()
    assert (counts["sends_lost"], counts["skipped_sending"], counts["sent"]) == (1, 1, 1)


@on_sqlite
async def test_one_that_failed_for_hours_is_not_sent_at_another_time_of_the_day(
    valkey: Valkey, database: Database
) -> None:
    """Each failure lets it be due again a quarter of an hour later; its window ended at eleven."""
    away = True

    async def facts(subs):  # type: ignore[no-untyped-def]
        if away:
            raise ConnectionError("no facts today")
        return {}

    post = Post(valkey, database, facts=facts)
    await post.due("udr_a")
    for _ in range(17):
        await post.sender.run()
        post.clock.advance(901)
    away = False
    await post.sender.run()
    assert await post.sent() == [] and await QUEUED.size(valkey) == 0
    assert (await post.identities())["skipped_sending"] == 1


async def test_a_crash_after_the_touch_was_queued_sends_nothing_twice(server: Valkey, database: Database) -> None:
    room = Room(server, database, "2026-03-02 09:00")
    touches = DyingTouches(server, room.clock)
    post = Post(server, database, touches)
    for number in range(5):
        await post.due(f"udr_{number}")
    with pytest.raises(Killed):
        await post.sender.run()
    first = await post.sent()
    assert len(first) == 5 and await QUEUED.size(server) == 0, "they lie in purgatory"
    touches.alive = True
    await SEND_LOCK.key.at().delete(server)
    await post.sender.run()
    assert await post.sent() == first
    counts = await post.identities()
    assert counts["sent"] == counts["sends_attempted"] == 5
    held = {code for touch in first for code in touch.success_callback.kwargs["codes"]}  # type: ignore[union-attr]
    assert {code for code, _ in await BUFFER.at().range(server)} == held, "links of the second try are given up"


async def test_an_edited_reminder_is_not_sent_again_today(valkey: Valkey, database: Database) -> None:
    post = Post(valkey, database)
    await post.due("udr_a")
    await post.sender.run()
    await QUEUED.schedule(valkey, DueReminder("udr_a", TODAY), post.clock.now())
    await post.sender.run()
    assert len(await post.sent()) == 1 and (await post.identities())["sends_attempted"] == 1
    assert await SENT.at(TODAY).members(valkey) == ["udr_a"] and await QUEUED.size(valkey) == 0
    await QUEUED.schedule(valkey, DueReminder("udr_a", TODAY + 1), post.clock.now())
    await post.sender.run()
    assert len(await post.sent()) == 2, "tomorrow is another day"


@on_sqlite
async def test_a_full_queue_of_touches_stops_the_run_and_loses_nothing(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 09:00")
    post = Post(valkey, database, Touches(valkey, room.clock, most_queued=403))
    for number in range(6):
        await post.due(f"udr_{number}")
    for _ in range(4):
        await post.touches.send(UserSub("somebody"), "daily_reminder", channel="push")
    ended = await post.sender.run()
    assert ended is not None and ended.stop_reason is StopReason.BACKPRESSURE
    assert await QUEUED.size(valkey) == 6 and await BUFFER.at().size(valkey) == 0, "no links are made in vain"
    await TO_SEND.queue.delete(valkey)
    await post.sender.run()
    assert len(await post.sent()) == 6


@on_sqlite
async def test_the_plan_hears_what_is_known_of_a_person(valkey: Valkey, database: Database) -> None:
    asked = []

    async def facts(subs):  # type: ignore[no-untyped-def]
        asked.extend(subs)
        return {"of_udr_a": PersonFacts(streak=4, goal_days=3, days_this_week=1, last_took_part_at=now)}

    post = Post(valkey, database, plan=ByEngagement(), facts=facts)
    now = post.clock.now()
    await post.due("udr_a")
    await post.due("udr_b")
    await post.sender.run()
    found = {touch.user_sub: touch for touch in await post.sent()}
    assert sorted(asked) == ["of_udr_a", "of_udr_b"]
    assert found["of_udr_a"].touch_point_event_slug == "daily_reminder_engaged"
    assert found["of_udr_a"].event_parameters["streak"] == "4 days"
    assert found["of_udr_a"].event_parameters["goal"] == "1 of 3"
    assert found["of_udr_b"].touch_point_event_slug == "daily_reminder_disengaged"
    assert "streak" not in found["of_udr_b"].event_parameters
    # A day later the first one no longer takes part: the others' sequence begins from its start.
    post.clock.advance(4 * 86400)
    await QUEUED.schedule(valkey, DueReminder("udr_a", TODAY + 4), post.clock.now())
    await post.sender.run()
    last = (await post.sent())[-1]
    assert last.touch_point_event_slug == "daily_reminder_disengaged" and last.event_parameters["ss_reset"] is True
