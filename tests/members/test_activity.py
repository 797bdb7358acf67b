"""Who was active, by day and month, and who came back so long after joining."""

import random
from collections import defaultdict
from datetime import date, datetime, timedelta

import pytest

from keystead.dates import date_to_unix_date, date_to_unix_month
from keystead.errors import Invalid
from keystead.keys import Registry
from keystead.members import Seen, activity
from keystead.members.keys import MEMBERS
from keystead.members.stats import DAILY_ACTIVE, MONTHLY_ACTIVE, NEW_USERS, RETENTION, USERS

from .room import LOS_ANGELES, NOON, TODAY, Room, on_sqlite

DAY = 86400.0
PERIODS = (0, 1, 7, 30, 90)


async def members_of(room: Room, period: int, retained: str, day: int) -> set[str]:
    return set(await RETENTION.members_key.at(f"{period}day", retained, day).members(room.valkey))


@on_sqlite
async def test_one_activity_tells_what_it_was_the_first_of(wide_room: Room) -> None:
    room = wide_room
    member = await room.users.ensure("google", "g-1")
    assert await room.activity.seen(member.sub, created_at=NOON) == Seen(True, True, 1)
    assert await room.activity.seen(member.sub) == Seen(False, False, 0)
    room.clock.advance(DAY)
    assert await room.activity.seen(member.sub) == Seen(True, False, 1)
    room.clock.advance(30 * DAY)
    assert await room.activity.seen(member.sub) == Seen(True, True, 2)
    room.clock.advance(151 * DAY)
    assert await room.activity.seen(member.sub) == Seen(True, True, 1), "the last day on which it matters"
    assert await RETENTION.sizes(room.valkey, TODAY) == dict.fromkeys(PERIODS, (1, 0))
    registry = Registry([MEMBERS], room.valkey.layout)
    for node in await room.valkey.nodes():
        assert all(registry.resolve(key) is not None for key in await node.call(("KEYS", "*stats:*")))


async def test_who_comes_back_too_late_came_back_for_no_further_period(room: Room) -> None:
    member = await room.users.ensure("google", "g-1")
    room.clock.advance(183 * DAY)
    assert await room.activity.seen(member.sub) == Seen(True, True, 0)
    assert await RETENTION.sizes(room.valkey, TODAY) == dict.fromkeys(PERIODS, (0, 1))


async def test_somebody_who_does_not_exist_is_not_counted(room: Room) -> None:
    assert await room.activity.seen("user_nobody") is None  # type: ignore[arg-type]
    assert await room.valkey.dbsize() == 0


async def test_activity_beside_a_count_that_is_still_under_way_is_not_lost(room: Room) -> None:
    """The process died after the commit; the person comes back before the job has run."""
    member = await room.users.ensure("google", "g-1")
    await room.valkey.flushall()
    assert await room.activity.seen(member.sub) == Seen(True, True, 1)
    await room.settle()
    assert await room.counted() == (1, 1, 1, {**dict.fromkeys(PERIODS, (0, 1)), 0: (1, 0)})


async def test_a_time_to_come_is_refused_and_a_clock_slightly_ahead_is_not(room: Room) -> None:
    member = await room.users.ensure("google", "g-1")
    with pytest.raises(Invalid, match="120 seconds from now"):
        await room.activity.seen(member.sub, at=NOON + 120)
    assert await DAILY_ACTIVE.size(room.valkey, TODAY) == 0
    assert await room.activity.seen(member.sub, at=NOON + 30) == Seen(True, True, 1)


async def test_when_somebody_joined_is_asked_once_a_day(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MOST_REMEMBERED", 2)
    created_at, asked = room.users.created_at, []

    async def asks(sub: str) -> float | None:
        asked.append(sub)
        return await created_at(sub)  # type: ignore[arg-type]

    monkeypatch.setattr(room.users, "created_at", asks)
    a, b, c = [(await room.users.ensure("google", f"g-{n}")).sub for n in range(3)]
    for sub in (a, a, b, a, c, a, b):
        await room.activity.seen(sub)
    assert asked == [a, b, c, b], "b was used least recently when c came"
    room.clock.advance(DAY)
    await room.activity.seen(a)
    assert asked == [a, b, c, b, a]


async def test_days_of_people_agree_with_a_plain_account(room: Room) -> None:
    """Sixty days and some later ones, over a change of the clock, at midnight too."""
    rng = random.Random(11)
    start = datetime.fromtimestamp(NOON, LOS_ANGELES).date()
    joined: dict[str, date] = {}
    active: dict[date, set[str]] = defaultdict(set)
    for offset in [*range(60), 75, 92, 93, 150, 181, 182, 183]:
        today = start + timedelta(days=offset)
        midnight = datetime(today.year, today.month, today.day, tzinfo=LOS_ANGELES)
        next_midnight = midnight + timedelta(days=1)
        length = next_midnight.timestamp() - midnight.timestamp()
        assert length == (82800 if today == date(2026, 3, 8) else 86400)
        moments = sorted([0.1, length - 0.1, *(rng.uniform(0, length) for _ in range(2))])
        for moment in moments:
            at = midnight.timestamp() + moment
            if at < room.clock.now():
                continue
            room.clock.advance(at - room.clock.now())
            if offset < 60 and rng.random() < 0.4:
                sub = (await room.users.ensure("google", f"g-{len(joined)}")).sub
                joined[sub] = today
            for sub in rng.sample(sorted(joined), k=min(len(joined), rng.randint(0, 5))):
                assert await room.activity.seen(sub) is not None
                active[today].add(sub)
    assert len(joined) > 50
    await room.settle()
    await agrees(room, joined, active)


async def agrees(room: Room, joined: dict[str, date], active: dict[date, set[str]]) -> None:
    days = sorted({*joined.values(), *active})
    months: dict[int, set[str]] = defaultdict(set)
    for day in days:
        number = date_to_unix_date(day)
        assert await NEW_USERS.read(room.valkey, number) == list(joined.values()).count(day)
        assert set(await DAILY_ACTIVE.day_key.at(number).members(room.valkey)) == active[day]
        months[date_to_unix_month(day)] |= active[day]
    for month, subs in months.items():
        assert set(await MONTHLY_ACTIVE.day_key.at(month).members(room.valkey)) == subs
        new = [day for day in joined.values() if date_to_unix_month(day) == month]
        counted = await USERS.read(room.valkey, month)
        assert (counted.total, counted.month) == (len(joined), len(new))
    assert await NEW_USERS.earliest(room.valkey) == date_to_unix_date(min(joined.values()))
    assert await DAILY_ACTIVE.earliest(room.valkey) == date_to_unix_date(min(active))
    for day in set(joined.values()):
        number = date_to_unix_date(day)
        everybody = {sub for sub, of in joined.items() if of == day}
        wider = everybody
        for period in PERIODS:
            back = await members_of(room, period, "true", number)
            waiting = await members_of(room, period, "false", number)
            assert not back & waiting and back | waiting == everybody
            assert back <= wider, "whoever is there after 30 days is there after 7"
            wider = back
            assert back == {sub for sub in everybody for seen, subs in active.items()
                            if sub in subs and period <= (seen - day).days <= 182}
