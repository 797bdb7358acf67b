"""Who came back, by the day they joined."""

from collections import Counter as Multiset
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis.exceptions import ResponseError

from keystead.engine import Valkey
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import Keyspace, Registry
from keystead.patterns.by_day import LATE
from keystead.patterns.cohorts import Cohorts
from keystead.testing.checks import check_no_undeclared_keys
from tests.patterns.crash import Mortal
from tests.patterns.machines import on_both, play
from tests.patterns.rotating import DAY, RotatingMachine

ZONE = "America/Los_Angeles"
MEMBERS = Keyspace("members", tag="members")
RETENTION = Cohorts(MEMBERS, "stats:retention", zone=ZONE, table="retention_stats", personal=True,
                    purpose="who came back")
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def sizes(*pairs: tuple[int, int]) -> dict[int, tuple[int, int]]:
    return dict(zip(RETENTION.periods, pairs, strict=True))


def test_it_is_declared_under_the_documented_keys() -> None:
    registry = Registry([MEMBERS])
    assert {"stats:retention:{period}:{retained}:{unix_date}", "stats:retention:{period}:{retained}:earliest",
            "stats:retention:late"} <= {declaration.pattern for declaration in registry}
    assert registry.resolve(b"stats:retention:7day:true:19331") is not None
    assert registry.resolve(b"stats:retention:8day:true:19331") is None
    assert (RETENTION.name, RETENTION.held_days) == ("retention", 183)


async def test_a_member_waits_in_every_period_and_comes_back_for_those_that_passed(server: Valkey) -> None:
    assert await RETENTION.join(server, "u1", at=NOON) == 1
    assert await RETENTION.join(server, "u2", day=DAY) == 1
    assert await RETENTION.sizes(server, DAY) == sizes(*[(0, 2)] * 5)
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY) == 1, "on the day itself"
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 29) == 2
    assert await RETENTION.sizes(server, DAY) == sizes((1, 1), (1, 1), (1, 1), (0, 2), (0, 2))
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 182) == 2
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 182) == 0, "once is enough"
    assert await RETENTION.join(server, "u1", day=DAY) == 0, "known, and stays among those who came back"
    assert await RETENTION.sizes(server, DAY) == sizes(*[(1, 1)] * 5)


async def test_activity_of_strangers_and_outside_the_window_changes_nothing(server: Valkey) -> None:
    await RETENTION.join(server, "u1", day=DAY)
    assert await RETENTION.active(server, "stranger", joined_day=DAY, day=DAY + 5) == 0
    assert await RETENTION.active(server, "u1", joined_day=DAY - 1, day=DAY + 5) == 0
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 183) == 0
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY - 1) == 0
    assert await RETENTION.sizes(server, DAY) == sizes(*[(0, 1)] * 5)
    assert await RETENTION.earliest(server) == DAY


async def test_a_cohort_that_is_gone_counts_apart(server: Valkey) -> None:
    await RETENTION.join(server, "u1", day=DAY)
    await RETENTION.active(server, "u1", joined_day=DAY, day=DAY)
    assert await RETENTION.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await RETENTION.join(server, "u2", day=DAY) == LATE
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 90) == LATE
    assert await RETENTION.sizes(server, DAY) == sizes((1, 0), *[(0, 1)] * 4), "still there while it is stored"
    assert await RETENTION.end_rotation(server, DAY, "rot_1")
    assert await RETENTION.earliest(server) == DAY + 1
    assert await RETENTION.late(server) == {DAY: 1}


def test_periods_that_make_no_sense_are_refused() -> None:
    for periods in ((), (7, 1), (1, 1), (-1,), (0, 183)):
        with pytest.raises(DeclarationError, match="periods"):
            Cohorts(Keyspace("x"), "stats:x", periods=periods, zone=ZONE, purpose="a test")


async def test_all_periods_leave_together_and_each_earliest_stays_right(server: Valkey) -> None:
    """An older program may have rotated some of the sets of a day and not others."""
    await RETENTION.join(server, "u1", day=DAY)
    await RETENTION.join(server, "u2", day=DAY + 5)
    await RETENTION.active(server, "u2", joined_day=DAY + 5, day=DAY + 5)
    await RETENTION.earliest_key.at("30day", "false").set(server, DAY + 1)
    assert await RETENTION.begin_rotation(server, DAY + 1, "rot_0") is None, "another period still has an older day"
    assert await RETENTION.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await RETENTION.begin_rotation(server, DAY, "rot_2") == "rot_1", "the one that is under way"
    assert not await RETENTION.end_rotation(server, DAY, "rot_2")
    assert await RETENTION.end_rotation(server, DAY, "rot_1")
    assert not await RETENTION.end_rotation(server, DAY, "rot_1")
    firsts = {(period, retained): await RETENTION.earliest_key.at(f"{period}day", retained).get(server)
              for period in RETENTION.periods for retained in ("true", "false")}
    assert firsts == {**{(period, "false"): DAY + 1 for period in RETENTION.periods},
                      **{(period, "true"): None for period in RETENTION.periods}, (0, "true"): DAY + 5}


async def test_a_member_joins_and_is_active_in_the_callers_transaction(server: Valkey) -> None:
    async with server.pipeline(transaction=True) as pipeline:
        joined = RETENTION.join(pipeline, "u1", at=NOON)
        active = RETENTION.active(pipeline, "u1", joined_day=DAY, at=NOON)
        outside = RETENTION.active(pipeline, "u1", joined_day=DAY, day=DAY + 500)
        await pipeline.execute()
    assert (await joined, await active, await outside) == (1, 1, 0)


async def test_a_set_that_someone_spoiled_stops_a_move_before_anything_is_written(server: Valkey) -> None:
    await RETENTION.join(server, "u1", day=DAY)
    spoiled = RETENTION.members_key.at("30day", "true", DAY).name(server.layout)
    await server.set(spoiled, "x")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 90)
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await RETENTION.join(server, "u2", day=DAY)
    await server.delete(spoiled)
    assert await RETENTION.sizes(server, DAY) == sizes(*[(0, 1)] * 5)
    await RETENTION.earliest_key.at("7day", "false").delete(server)
    await server.set(RETENTION.earliest_key.at("7day", "false").name(server.layout), "soon")
    with pytest.raises(Corrupt, match="7day:false:earliest"):
        await RETENTION.earliest(server)


async def test_many_days_are_read_in_one_round_trip(valkey: Valkey) -> None:
    for number in range(3):
        await RETENTION.join(valkey, f"u{number}", day=DAY + number % 2)
    found = await RETENTION.sizes_range(Mortal(valkey, 2, after=False), DAY, DAY + 181)  # would die at a second one
    assert len(found) == 182
    assert (found[DAY][90], found[DAY + 1][90], found[DAY + 181][0]) == ((0, 2), (0, 1), (0, 0))


async def test_a_day_in_the_future_is_refused_and_nothing_is_written(server: Valkey) -> None:
    with pytest.raises(DeclarationError, match="retention: day 19332 lies in the future"):
        await RETENTION.join(server, "u1", day=DAY + 1, today=DAY)
    with pytest.raises(DeclarationError, match="retention"):
        await RETENTION.active(server, "u1", joined_day=-1, day=DAY)
    assert await server.dbsize() == 0


async def test_a_stored_cohort_is_emptied_for_every_period(server: Valkey) -> None:
    for number in range(40):
        await RETENTION.join(server, f"m{number}", day=100)
        await RETENTION.active(server, f"m{number}", joined_day=100, day=100 + number)
    assert await RETENTION.begin_rotation(server, 100, "r") == "r"
    await RETENTION.empty_aside(server, 100, "another")
    assert sum(map(sum, (await RETENTION.sizes(server, 100)).values())) == 40 * 5
    await RETENTION.empty_aside(server, 100, "r")
    assert sum(map(sum, (await RETENTION.sizes(server, 100)).values())) == 0
    assert await RETENTION.end_rotation(server, 100, "r")


SHORT = Cohorts(MEMBERS, "stats:short", periods=(0, 1, 3), window_days=4, zone=ZONE, personal=True, purpose="a test")


@on_both
def test_cohorts_follow_a_plain_model_whatever_dies(request: pytest.FixtureRequest, place: str) -> None:
    class Machine(RotatingMachine):
        family = SHORT

        def __init__(self, url: str, servers: list[Any]) -> None:
            super().__init__(url, servers)
            self.back: dict[int, dict[str, set[int]]] = {}  # day → member → periods it came back for
            self.late: Multiset[int] = Multiset()

        def model(self, day: int) -> dict[int, tuple[int, int]]:
            members = self.back.get(day, {})
            came = {period: sum(period in periods for periods in members.values()) for period in SHORT.periods}
            return {period: (number, len(members) - number) for period, number in came.items()}

        async def store_day(self, on: Any, day: int, rotation_id: str) -> None:
            sizes = await SHORT.sizes(on, day)
            if self.once(rotation_id):
                assert sizes == self.model(day), "a cohort leaves as it is"
                self.stored[day] += 1

        @rule(member=st.sampled_from("abcd"), ago=st.integers(0, 7))
        def join(self, member: str, ago: int) -> None:
            day = self.today - ago
            told = self.run(lambda: SHORT.join(self.client, member, day=day))
            if self.is_rotated(day):
                self.late[day] += 1
                assert told == LATE
            else:
                assert told == (member not in self.back.setdefault(day, {}))
                self.back[day].setdefault(member, set())

        @rule(member=st.sampled_from("abcd"), ago=st.integers(0, 7), after=st.integers(-1, 6))
        def active(self, member: str, ago: int, after: int) -> None:
            day = self.today - ago
            told = self.run(lambda: SHORT.active(self.client, member, joined_day=day, day=day + after))
            passed = {period for period in SHORT.periods if period <= after <= 4}
            if passed and self.is_rotated(day):
                assert told == LATE
                return
            periods = self.back.get(day, {}).get(member)
            assert told == (0 if periods is None else len(passed - periods))
            if periods is not None:
                periods |= passed

        @invariant()
        def the_lattice_holds(self) -> None:
            days = range(DAY - 7, self.today + 1)
            found = self.run(lambda: SHORT.sizes_range(self.client, days[0], days[-1]))
            for day in days:
                assert found[day] in (self.model(day), dict.fromkeys(SHORT.periods, (0, 0)))
                assert day in self.stored or found[day] == self.model(day)
            for day in days[-3:]:
                self.run(lambda day=day: self.check_sets(day))

        async def check_sets(self, day: int) -> None:
            sets = {(period, retained): await self.client.smembers(
                        SHORT.members_key.at(f"{period}day", retained, day).name(self.client.layout))
                    for period in SHORT.periods for retained in ("true", "false")}
            everybody = sets[0, "true"] | sets[0, "false"]
            for period in SHORT.periods:
                assert not sets[period, "true"] & sets[period, "false"]
                assert sets[period, "true"] | sets[period, "false"] == everybody
            assert sets[3, "true"] <= sets[1, "true"] <= sets[0, "true"]

        def teardown(self) -> None:
            try:
                self.everything_leaves()
                assert self.stored.keys() >= self.back.keys() and set(self.stored.values()) <= {1}
                assert self.late_stored == self.late
                check_no_undeclared_keys(Registry([MEMBERS], self.client.layout), *self.servers)
                state = self.run(lambda: SHORT.rotation_state(self.client))
                assert state is None or (state.id, state.late_id) == (None, None)
                left = [key for server in self.servers for key in server.call("KEYS", "*")]
                assert all(key.endswith((b":earliest", b":rotation")) for key in left), "nothing but how far it came"
            finally:
                super().teardown()

    play(request, place, Machine, examples=20, steps=40)
