"""Times of reminders, over zones, clock changes, crashes and edits."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert, update

from keystead.engine import Valkey
from keystead.jobs import StopReason
from keystead.members.tables import USERS
from keystead.reminders.assigner import Assigner
from keystead.reminders.due_rows import DueRow
from keystead.reminders.keys import EARLIEST, PROGRESS, QUEUED, SENT, ZONES
from keystead.reminders.stats import ASSIGN_RUN
from keystead.reminders.stats import SENT as COUNTED
from keystead.reminders.tables import REMINDERS
from keystead.settings import RemindersSettings
from keystead.store import Database
from keystead.testing.clock import MovableClock

SECRET = b"a secret of tests"
ANGELES = ZoneInfo("America/Los_Angeles")
EVERY_DAY = 127
MORNING = (6 * 3600, 11 * 3600)
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def instant(text: str, zone: str = "America/Los_Angeles") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def day(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("UTC")).timestamp() // 86400)


class Room:
    """Reminders of made-up people, and a clock that is moved by hand."""

    def __init__(self, valkey: Valkey, database: Database, now: str, settings: RemindersSettings | None = None) -> None:
        self.valkey, self.database, self.clock = valkey, database, MovableClock(now=instant(now))
        self.assigner = Assigner(
            valkey, database, self.clock, settings or RemindersSettings(), SECRET, page_rows=7
        )

    async def remind(
        self, uid: str, window: tuple[int, int] = MORNING, *, zone: str = "America/Los_Angeles", mask: int = EVERY_DAY,
        channel: str = "sms", joined_at: float = 0.0,
    ) -> None:
        async with self.database.transaction() as sql:
            user = (await sql.execute(insert(USERS).returning(USERS.c.id), {
                "sub": f"of_{uid}", "timezone": zone, "created_at": joined_at,
            })).scalar_one()
            await sql.execute(insert(REMINDERS), {
                "uid": uid, "user_id": user, "channel": channel, "start_time": window[0], "end_time": window[1],
                "day_of_week_mask": mask, "timezone": zone, "created_at": joined_at,
            })

    async def run(self) -> StopReason:
        ended = await self.assigner.run()
        assert ended is not None
        return ended.stop_reason

    async def times(self) -> dict[tuple[str, int], float]:
        found = await QUEUED.due.range(self.valkey)
        return {(due.uid, due.unix_date): at for due, at in found}

    async def walk(self, hours: float, minutes: int = 15) -> dict[tuple[str, int], float]:
        """Let time go by, a run every few minutes; every time that was given."""
        given: dict[tuple[str, int], float] = {}
        for _ in range(int(hours * 60 / minutes)):
            await self.run()
            for what, at in (await self.times()).items():
                assert given.setdefault(what, at) == at, "a reminder got two times"
            self.clock.advance(minutes * 60)
        return given


async def test_a_reminder_gets_a_time_in_its_window(server: Valkey, database: Database) -> None:
    room = Room(server, database, "2026-03-02 05:00")
    for number in range(20):
        await room.remind(f"udr_{number:02}")
    assert await room.run() is StopReason.LIST_EXHAUSTED
    assert await room.times() == {}, "the window opens in an hour, and times are chosen 35 minutes ahead"
    room.clock.advance(30 * 60)
    await room.run()
    times = await room.times()
    assert len(times) == 20 and {unix_date for _, unix_date in times} == {day("2026-03-02")}
    assert all(instant("2026-03-02 06:00") <= at <= instant("2026-03-02 11:00") for at in times.values())
    assert len(set(times.values())) > 15, "they are spread"
    counted = await COUNTED.read(server, day("2026-03-02"))
    assert counted.counts["attempted"] == counted.counts["time_assigned"] == 20
    assert counted.breakdowns["time_assigned"] == {"sms": 20}
    run = await ASSIGN_RUN.at().get(server)
    assert run is not None and (run.attempted, run.sms_queued, run.stop_reason) == (20, 20, "list_exhausted")


@on_sqlite
async def test_each_day_of_a_week_has_one_time_by_its_mask(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-01 00:00")  # a Sunday
    await room.remind("udr_sunday", mask=1)
    await room.remind("udr_weekend", mask=0b1000001)
    await room.remind("udr_daily")
    given = await room.walk(24 * 7, minutes=30)
    dates = {uid: sorted(unix_date for found, unix_date in given if found == uid) for uid, _ in given}
    first = day("2026-03-01")
    assert dates["udr_sunday"] == [first]
    assert dates["udr_weekend"] == [first, first + 6]
    assert dates["udr_daily"] == list(range(first, first + 7))


@on_sqlite
async def test_zones_at_both_ends_of_the_earth_and_windows_past_midnight(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 00:00")
    late = (22 * 3600, 26 * 3600)
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "America/Los_Angeles", "Asia/Kathmandu"):
        await room.remind(f"udr_{zone.replace('/', '_').replace('+', 'p')}", late, zone=zone)
    given = await room.walk(60, minutes=30)
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "America/Los_Angeles", "Asia/Kathmandu"):
        uid = f"udr_{zone.replace('/', '_').replace('+', 'p')}"
        mine = {unix_date: at for (found, unix_date), at in given.items() if found == uid}
        assert day("2026-03-02") in mine and day("2026-03-03") in mine, zone
        at = datetime.fromtimestamp(mine[day("2026-03-02")], ZoneInfo(zone))
        assert (at.day, at.hour) >= (2, 22) and (at.day, at.hour) <= (3, 2), "the day is that of the start"
    assert await EARLIEST.at().get(valkey) >= day("2026-03-03"), "days that are over are closed"
    assert not await ZONES.at(day("2026-03-01")).exists(valkey)
    assert not await PROGRESS.at("America/Los_Angeles", day("2026-03-01")).exists(valkey)


@on_sqlite
@pytest.mark.parametrize("night", ["2026-03-07 12:00", "2026-10-31 12:00"])
async def test_a_changed_clock_shifts_the_wall_time_and_loses_no_day(
    valkey: Valkey, database: Database, night: str
) -> None:
    room = Room(valkey, database, night)
    for hour in (0, 1, 2, 3, 9, 22):
        await room.remind(f"udr_{hour:02}", (hour * 3600, hour * 3600 + 600))
    given = await room.walk(72, minutes=30)
    first = day(night[:10])
    for hour in (0, 1, 2, 3, 9, 22):
        dates = [unix_date for uid, unix_date in given if uid == f"udr_{hour:02}"]
        assert {first + 1, first + 2} <= set(dates) and len(dates) == len(set(dates))


async def test_who_joined_today_is_left_alone(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 05:50")
    await room.remind("udr_new", joined_at=room.clock.now() - 11 * 3600)
    await room.remind("udr_old", joined_at=room.clock.now() - 13 * 3600)
    await room.run()
    assert {uid for uid, _ in await room.times()} == {"udr_old"}


async def test_overdue_reminders_are_spread_over_what_is_left_and_old_ones_dropped(
    valkey: Valkey, database: Database
) -> None:
    room = Room(valkey, database, "2026-03-02 10:00")
    for number in range(15):
        await room.remind(f"udr_{number:02}")
    await room.remind("udr_over", (6 * 3600, 7 * 3600), channel="email")
    await room.remind("udr_just_over", (6 * 3600, int(9.5 * 3600)), channel="email")
    await room.run()
    times = {uid: at for (uid, unix_date), at in (await room.times()).items() if unix_date == day("2026-03-02")}
    now = room.clock.now()
    assert "udr_over" not in times
    assert times.pop("udr_just_over") == now
    assert all(now <= at <= instant("2026-03-02 11:00") for at in times.values())
    assert sum(at == now for at in times.values()) <= 1
    counted = await COUNTED.read(valkey, day("2026-03-02"))
    assert counted.counts["overdue"] == 17
    assert counted.breakdowns["skipped_assigning_time"] == {"email": 1}
    assert counted.counts["attempted"] == counted.counts["time_assigned"] + counted.counts["skipped_assigning_time"]


async def test_an_edited_reminder_that_was_sent_gets_no_second_time(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 05:50")
    await room.remind("udr_a")
    await room.run()
    today = day("2026-03-02")
    assert ("udr_a", today) in await room.times()
    await QUEUED.due.delete(valkey)
    await SENT.at(today).add(valkey, "udr_a")
    async with database.transaction() as sql:
        await sql.execute(update(REMINDERS).values(start_time=12 * 3600, end_time=13 * 3600))
    room.clock.advance(6 * 3600)
    await room.run()
    assert ("udr_a", today) not in await room.times()


async def test_nothing_more_is_given_while_too_many_wait(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 05:50", RemindersSettings(queued_items=10))
    for number in range(30):
        await room.remind(f"udr_{number:02}")
    assert await room.run() is StopReason.BACKPRESSURE
    assert len(await room.times()) == 14, "two pages of seven"
    await QUEUED.due.delete(valkey)
    assert await room.run() is StopReason.BACKPRESSURE
    await QUEUED.due.delete(valkey)
    assert await room.run() is StopReason.LIST_EXHAUSTED


async def test_runs_at_once_give_each_reminder_one_time_and_count_it_once(server: Valkey, database: Database) -> None:
    room = Room(server, database, "2026-03-02 05:50")
    for number in range(60):
        await room.remind(f"udr_{number:02}")
    other = Assigner(server, database, room.clock, RemindersSettings(), SECRET, page_rows=11)
    stop = asyncio.Event()

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(room.assigner.work(stop))
            tasks.create_task(other.work(stop))

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        tasks.create_task(both())
        while len(await room.times()) < 60:
            await asyncio.sleep(0.05)
        stop.set()
    counted = await COUNTED.read(server, day("2026-03-02"))
    assert counted.counts["attempted"] == counted.counts["time_assigned"] == 60


async def test_a_run_that_was_overtaken_goes_on_from_where_the_other_is(valkey: Valkey, database: Database) -> None:
    """The other run began earlier, and so went less far: what it left out must not count as done."""
    room = Room(valkey, database, "2026-03-02 05:50")
    for number in range(5):
        await room.remind(f"udr_{number}")
    rows, progress = room.assigner._rows, PROGRESS.at("America/Los_Angeles", day("2026-03-02"))
    page, overtaken = rows.page, []

    async def overtaking(zone: str, cursor: tuple[int, str], **asked: Any) -> Sequence[DueRow]:
        found = await page(zone, cursor, **asked)
        if found and not overtaken:
            overtaken.append(found[1].uid)
            await progress.update(valkey, start_time=found[1].start_time, uid=found[1].uid, finished=0)
        return found

    rows.page = overtaking  # type: ignore[method-assign]
    await room.run()
    assert overtaken == ["udr_1"]
    assert {uid for uid, _ in await room.times()} == {"udr_2", "udr_3", "udr_4"}


async def test_a_zone_that_is_new_today_is_listed_at_once(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 05:50")
    await room.remind("udr_a")
    await room.run()
    await room.remind("udr_b", zone="America/Phoenix")
    await room.run()
    assert {uid for uid, _ in await room.times()} == {"udr_a", "udr_b"}
