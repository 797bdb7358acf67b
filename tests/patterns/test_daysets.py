"""Sets and numbers by day."""

import random
from collections import Counter as Multiset

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns.daysets import LATE, DayNumber, DaySet
from keystead.testing.checks import check_no_undeclared_keys
from tests.patterns.crash import Died, Mortal, crash_points

ZONE = "America/Los_Angeles"
STATS = Keyspace("stats", tag="stats")
ACTIVE = DaySet(STATS, "stats:daily_active_users", zone=ZONE, table="daily_active_user_stats", personal=True,
                purpose="people active on a day")
MONTHLY = DaySet(STATS, "stats:monthly_active_users", zone=ZONE, monthly=True, personal=True,
                 purpose="people active in a month")
NEW = DayNumber(STATS, "stats:daily_new_users", zone=ZONE, purpose="people who joined on a day")
CANONICAL = DayNumber(STATS, "stats:canonical", zone=None, purpose="by the day of the reader")
DAY = 19331
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


async def test_members_count_once_a_day(server: Valkey) -> None:
    assert await ACTIVE.add(server, "u1", "u2", at=NOON) == 2
    assert await ACTIVE.add(server, "u1", "u3", at=NOON) == 1
    assert await ACTIVE.add(server, "u1", day=DAY - 1) == 1
    assert (await ACTIVE.size(server, DAY), await ACTIVE.size(server, DAY - 1)) == (3, 1)
    assert await ACTIVE.contains(server, "u3", DAY) and not await ACTIVE.contains(server, "u3", DAY - 1)
    assert await ACTIVE.earliest(server) == DAY - 1
    assert ACTIVE.day_key.at(DAY).logical == "stats:daily_active_users:19331"
    assert await MONTHLY.add(server, "u1", at=NOON) == 1
    assert await MONTHLY.size(server, 635) == 1


async def test_a_stored_day_is_emptied_step_by_step(server: Valkey) -> None:
    await ACTIVE.add(server, *(f"u{number}" for number in range(3000)), day=DAY)
    await ACTIVE.empty_aside(server, DAY, "r")
    assert await ACTIVE.size(server, DAY) == 3000  # nothing is under way
    assert await ACTIVE.begin_rotation(server, DAY, "r") == "r"
    await ACTIVE.empty_aside(server, DAY, "another")
    await ACTIVE.empty_aside(server, DAY - 1, "r")
    assert await ACTIVE.size(server, DAY) == 3000
    for _ in range(2):
        await ACTIVE.empty_aside(server, DAY, "r")
        assert await ACTIVE.size(server, DAY) == 0
    assert await ACTIVE.end_rotation(server, DAY, "r") and await ACTIVE.earliest(server) == DAY + 1


async def test_numbers_by_day_accept_a_backdated_day(server: Valkey) -> None:
    assert await NEW.increment(server, at=NOON) == 1
    assert await NEW.increment(server, 3, at=NOON) == 4
    assert await NEW.increment(server, day=DAY - 2) == 1
    assert await NEW.earliest(server) == DAY - 2
    assert await NEW.read(server, DAY) == 4
    with pytest.raises(DeclarationError, match="canonical"):
        await CANONICAL.increment(server, at=NOON)
    with pytest.raises(DeclarationError, match="say when"):
        await NEW.increment(server)


async def test_what_comes_after_the_rotation_is_counted_apart(server: Valkey) -> None:
    await ACTIVE.add(server, "u1", "u2", day=DAY)
    assert await ACTIVE.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await ACTIVE.size(server, DAY) == 2, "the day is still there while it is stored"
    assert await ACTIVE.add(server, "u1", "u9", day=DAY) == LATE
    assert await ACTIVE.end_rotation(server, DAY, "rot_1")
    assert (await ACTIVE.size(server, DAY), await ACTIVE.earliest(server)) == (0, DAY + 1)
    assert await ACTIVE.late(server) == {DAY: 2}
    await NEW.increment(server, 5, day=DAY)
    await NEW.begin_rotation(server, DAY, "rot_2")
    assert await NEW.increment(server, 2, day=DAY) == LATE
    assert await NEW.read(server, DAY) == 5
    await NEW.end_rotation(server, DAY, "rot_2")
    assert await NEW.late(server) == {DAY: 2}


async def test_what_came_late_is_taken_once(server: Valkey) -> None:
    for family, write in ((ACTIVE, lambda n: ACTIVE.add(server, *[f"u{each}" for each in range(n)], day=DAY)),
                          (NEW, lambda n: NEW.increment(server, n, day=DAY))):
        await write(1)
        await family.begin_rotation(server, DAY, "rot_1")
        await family.end_rotation(server, DAY, "rot_1")
        assert await family.begin_late(server, "late_0") is None, "nothing came late"
        assert await write(2) == LATE
        assert await family.begin_late(server, "late_1") == ("late_1", {DAY: 2})
        await write(3)
        assert await family.begin_late(server, "late_2") == ("late_1", {DAY: 2}), "that is still under way"
        assert await family.late(server) == {DAY: 5}, "all that is not stored yet"
        assert [await family.end_late(server, each) for each in ("late_2", "late_1", "late_1")] == [False, True, False]
        assert await family.begin_late(server, "late_3") == ("late_3", {DAY: 3})


async def test_storing_what_came_late_may_die_anywhere(server: Valkey) -> None:
    async def store(on, table: dict[str, int], late_id: str) -> None:
        taken = await NEW.begin_late(on, late_id)
        if taken is not None:
            table.setdefault(taken[0], sum(taken[1].values()))
            await NEW.end_late(on, taken[0])

    async for mortal in crash_points(server, 20):
        await server.flushdb()
        await NEW.increment(server, 7, day=DAY)
        await rotate(server, {}, "rot_1")
        await NEW.increment(server, 2, day=DAY)
        await NEW.increment(server, 3, day=DAY)
        table: dict[str, int] = {}
        try:
            await store(mortal, table, "late_1")
        except Died:
            await NEW.increment(server, 1, day=DAY)
            for number in (2, 3):
                await store(server, table, f"late_{number}")
            assert sum(table.values()) == 6
        if not mortal.dead:
            assert sum(table.values()) == 5
            return


async def test_many_days_are_read_in_one_round_trip(server: Valkey) -> None:
    await ACTIVE.add(server, "u1", "u2", day=DAY)
    await ACTIVE.begin_rotation(server, DAY, "rot_1")
    await ACTIVE.add(server, "u1", day=DAY + 2)
    await NEW.increment(server, 4, day=DAY + 1)
    once = Mortal(server, 2, after=False)  # would die at a second call
    assert await ACTIVE.read_range(once, DAY, DAY + 2) == {DAY: 2, DAY + 1: 0, DAY + 2: 1}
    assert await NEW.read_range(Mortal(server, 2, after=False), DAY, DAY + 1) == {DAY: 0, DAY + 1: 4}


async def test_a_future_day_or_an_amount_below_one_is_refused_by_name(server: Valkey) -> None:
    with pytest.raises(DeclarationError, match="daily_new_users: day 19332 lies in the future"):
        await NEW.increment(server, day=DAY + 1, today=DAY)
    with pytest.raises(DeclarationError, match="daily_active_users: day 19332 lies in the future"):
        await ACTIVE.add(server, "u1", day=DAY + 1, today=DAY)
    for amount in (0, -1, 1.5, True):
        with pytest.raises(DeclarationError, match="daily_new_users: an amount"):
            await NEW.increment(server, amount, day=DAY)  # type: ignore[arg-type]
    assert await server.dbsize() == 0
    assert (NEW.name, ACTIVE.table, ACTIVE.held_days) == ("daily_new_users", "daily_active_user_stats", 1)


async def test_a_member_joins_in_the_callers_transaction(server: Valkey) -> None:
    async with server.pipeline(transaction=True) as pipeline:
        added, number = ACTIVE.add(pipeline, "u1", at=NOON), NEW.increment(pipeline, at=NOON)
        await pipeline.execute()
    assert (await added, await number) == (1, 1)


async def test_a_rotation_that_dies_anywhere_counts_everybody_once(server: Valkey) -> None:
    async for mortal in crash_points(server, 20):
        await server.flushdb()
        await NEW.increment(server, 7, day=DAY)
        table: dict[str, int] = {}
        try:
            await rotate(mortal, table, "rot_1")
        except Died:
            await rotate(server, table, "rot_2")
        assert list(table.values()) == [7]
        assert await NEW.earliest(server) == DAY + 1
        if not mortal.dead:
            return


async def rotate(on, table: dict[str, int], rotation_id: str) -> None:
    begun = await NEW.begin_rotation(on, DAY, rotation_id)
    if begun is not None:
        table.setdefault(begun, await NEW.read(on, DAY))
        await NEW.end_rotation(on, DAY, begun)


async def test_sets_and_numbers_follow_a_plain_model(server: Valkey, request: pytest.FixtureRequest) -> None:
    rng = random.Random(11)
    sets: dict[int, set[str]] = {}
    numbers: Multiset[int] = Multiset()
    late_members: Multiset[int] = Multiset()
    late_numbers: Multiset[int] = Multiset()
    floors = {"set": 0, "number": 0}
    for step in range(250):
        day = DAY + step // 60 - rng.choice((0, 0, 1, 2))
        if rng.random() < 0.08:
            for name, family in (("set", ACTIVE), ("number", NEW)):
                first = await family.earliest(server)
                if first is not None and first < DAY + step // 60:
                    await family.begin_rotation(server, first, f"rot_{step}")
                    assert await family.end_rotation(server, first, f"rot_{step}")
                    floors[name] = first + 1
        elif rng.random() < 0.5:
            member = f"u{rng.randint(1, 9)}"
            told = await ACTIVE.add(server, member, day=day)
            if day < floors["set"]:
                late_members[day] += 1
                assert told == LATE
            else:
                assert told == (member not in sets.setdefault(day, set()))
                sets[day].add(member)
        else:
            told = await NEW.increment(server, 2, day=day)
            if day < floors["number"]:
                late_numbers[day] += 2
                assert told == LATE
            else:
                numbers[day] += 2
                assert told == numbers[day]
    for day in range(DAY - 3, DAY + 6):
        assert await ACTIVE.size(server, day) == (len(sets.get(day, ())) if day >= floors["set"] else 0)
        assert await NEW.read(server, day) == (numbers[day] if day >= floors["number"] else 0)
    assert (await ACTIVE.late(server), await NEW.late(server)) == (late_members, late_numbers)
    assert late_members and late_numbers
    servers = (request.getfixturevalue("valkey_cluster").primaries() if server.layout is Layout.TAGGED
               else [request.getfixturevalue("valkey_server")])
    check_no_undeclared_keys(Registry([STATS], server.layout), *servers)
