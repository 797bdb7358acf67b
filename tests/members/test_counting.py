"""Things are counted once, also when their day has been rotated."""

import pytest

from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.members.counting import count_created
from keystead.members.keys import CONVERSIONS_COUNTED, COUNTED_SECONDS, CREATED_COUNTED
from keystead.members.stats import CONVERSION, NEW_USERS, RETENTION, USERS
from keystead.patterns.rows_by_day import RowsAdded

from .room import NOON, TODAY

PERIODS = (0, 1, 7, 30, 90)


async def test_a_person_is_counted_once_everywhere(server: Valkey) -> None:
    assert [await count_created(server, "user_a", NOON) for _ in range(3)] == [True, False, False]
    month = USERS.month_of(NOON)
    assert (await USERS.read(server, month)).total == (await USERS.read(server, month)).month == 1
    assert await NEW_USERS.read(server, TODAY) == 1
    assert await RETENTION.sizes(server, TODAY) == dict.fromkeys(PERIODS, (0, 1))
    assert (await USERS.earliest(server), await NEW_USERS.earliest(server), await RETENTION.earliest(server)) == (
        month, TODAY, TODAY)
    left = await server.pttl(CREATED_COUNTED.at("user_a").name(server.layout))
    assert 0 < left <= COUNTED_SECONDS * 1000


async def test_the_first_days_that_are_here_only_go_down(server: Valkey) -> None:
    for number, at in enumerate((NOON, NOON - 40 * 86400, NOON - 86400)):
        await count_created(server, f"user_{number}", at)
    assert await NEW_USERS.earliest(server) == await RETENTION.earliest(server) == TODAY - 40
    assert await USERS.earliest(server) == USERS.month_of(NOON - 40 * 86400)
    assert await NEW_USERS.read_range(server, TODAY - 2, TODAY) == {TODAY - 2: 0, TODAY - 1: 1, TODAY: 1}


async def test_who_is_counted_after_the_rotation_is_counted_as_late(server: Valkey) -> None:
    await count_created(server, "user_a", NOON)
    assert await NEW_USERS.begin_rotation(server, TODAY, "rot_1") == "rot_1"
    assert await NEW_USERS.end_rotation(server, TODAY, "rot_1")
    assert [await count_created(server, "user_b", NOON) for _ in range(2)] == [True, False]
    assert await NEW_USERS.late(server) == {TODAY: 1}
    assert await RETENTION.sizes(server, TODAY) == dict.fromkeys(PERIODS, (0, 2)), "the cohort stays for half a year"
    assert await RETENTION.begin_rotation(server, TODAY, "rot_2") == "rot_2"
    assert await RETENTION.end_rotation(server, TODAY, "rot_2")
    assert [await count_created(server, "user_c", NOON) for _ in range(2)] == [True, False]
    assert (await NEW_USERS.late(server), await RETENTION.late(server)) == ({TODAY: 2}, {TODAY: 1})
    assert (await USERS.read(server, USERS.month_of(NOON))).total == 3
    assert await NEW_USERS.earliest(server) == await RETENTION.earliest(server) == TODAY + 1


async def test_rows_are_added_once_under_their_mark(server: Valkey) -> None:
    done = CONVERSIONS_COUNTED.at("uid_1")
    changes = [("utm_source=a", "visits", 2), ("utm_source=b", "last_click_signups", -1)]
    told = [await CONVERSION.add_once(server, done, changes, held_seconds=60, day=TODAY) for _ in range(2)]
    assert told == [RowsAdded(), None]
    rows = await CONVERSION.read(server, TODAY)
    assert (rows["utm_source=a"]["visits"], rows["utm_source=b"]["last_click_signups"], len(rows)) == (2, -1, 2)
    assert 0 < await server.pttl(done.name(server.layout)) <= 60_000
    assert await CONVERSION.begin_rotation(server, TODAY, "rot_1") == "rot_1"
    other = CONVERSIONS_COUNTED.at("uid_2")
    told = [await CONVERSION.add_once(server, other, changes, held_seconds=60, day=TODAY) for _ in range(2)]
    assert told == [RowsAdded(late=2), None]


async def test_a_key_that_holds_something_else_leaves_nothing_half_counted(server: Valkey) -> None:
    day_sets = [RETENTION.members_key.at(f"{period}day", "true", TODAY) for period in PERIODS]
    keys = [USERS.total_key.at(), USERS.month_key.at(USERS.month_of(NOON)), USERS.earliest_key.at(),
            NEW_USERS.day_key.at(TODAY), NEW_USERS.earliest_key.at(), RETENTION.earliest_key.at("90day", "false"),
            NEW_USERS.late_key.at(), RETENTION.state_key.at(), day_sets[-1]]
    for key in keys:
        name = key.name(server.layout)
        await server.set(name, "nonsense")
        with pytest.raises(ErrorReply):
            await count_created(server, "user_a", NOON)
        assert [await node.call(("KEYS", "*")) for node in await server.nodes() if await node.call(("DBSIZE",))] == [
            [name]]
        await server.delete(name)
    assert await count_created(server, "user_a", NOON)
