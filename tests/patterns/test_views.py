"""Views by day and value."""

from collections import Counter as Multiset
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis.exceptions import ResponseError

from keystead.engine import Valkey
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import Keyspace, Registry
from keystead.patterns.views import TOTALS_NAMES, AllTimeViews, DimensionViews, Viewed, Views
from keystead.testing.checks import check_no_undeclared_keys
from tests.patterns.machines import on_both, play
from tests.patterns.rotating import DAY, RotatingMachine

ZONE = "America/Los_Angeles"
CONTENT = Keyspace("content", tag="content")
VIEWS = DimensionViews(CONTENT, "stats:interactive_prompt_sessions", zone=ZONE, personal=True,
                       table="journey_subcategory_view_stats", purpose="sessions by subcategory")
OLD = DimensionViews(CONTENT, "stats:journey_sessions", names=TOTALS_NAMES, zone=ZONE, personal=True,
                     purpose="sessions by subcategory")
FEW = DimensionViews(CONTENT, "stats:few", zone=ZONE, most_values=2, purpose="sessions by subcategory")
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def test_it_is_declared_under_the_documented_keys_of_both_spellings() -> None:
    patterns = {declaration.pattern for declaration in Registry([CONTENT])}
    new, old = "stats:interactive_prompt_sessions", "stats:journey_sessions"
    assert {f"{new}:{{subcategory}}:{{unix_date}}:subs", f"{new}:bysubcat:subcategories", f"{new}:bysubcat:earliest",
            f"{new}:bysubcat:total_views:{{unix_date}}", f"{new}:bysubcat:total_views",
            f"{new}:bysubcat:total_users"} <= patterns
    assert {f"{old}:{{subcategory}}:{{unix_date}}:subs", f"{old}:bysubcat:subcategories", f"{old}:bysubcat:earliest",
            f"{old}:bysubcat:totals:{{unix_date}}", f"{old}:bysubcat:totals",
            f"{old}:bysubcat:totals:earliest"} <= patterns
    assert f"{old}:bysubcat:total_users" not in patterns


async def test_views_and_viewers_are_counted_by_day_and_value(server: Valkey) -> None:
    assert await VIEWS.viewed(server, "sleep", "u1", at=NOON) == Viewed("sleep", new=True)
    assert await VIEWS.viewed(server, "sleep", "u1", at=NOON) == Viewed("sleep", new=False)
    await VIEWS.viewed(server, "a:b", "u1", day=DAY - 1)
    assert await VIEWS.read(server, DAY) == {"sleep": Views(2, 1)}
    assert await VIEWS.read_range(server, DAY - 1, DAY) == {DAY - 1: {"a:b": Views(1, 1)}, DAY: {"sleep": Views(2, 1)}}
    assert await VIEWS.earliest(server) == DAY - 1
    assert await VIEWS.all_time(server, before=DAY) == AllTimeViews({"a:b": 1}, {"a:b": 1})


async def test_totals_of_all_time_grow_when_a_day_ends_and_a_repeat_adds_nothing(server: Valkey) -> None:
    for value, member in (("sleep", "u1"), ("sleep", "u1"), ("walk", "u2")):
        await VIEWS.viewed(server, value, member, day=DAY)
    await VIEWS.viewed(server, "sleep", "u1", day=DAY + 1)
    expected = AllTimeViews({"sleep": 2, "walk": 1}, {"sleep": 1, "walk": 1})
    assert await VIEWS.all_time(server, before=DAY + 1) == expected
    assert await VIEWS.begin_rotation(server, DAY + 1, "rot_0") is None, "it is not the earliest"
    assert await VIEWS.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await VIEWS.begin_rotation(server, DAY, "rot_2") == "rot_1", "the one that is under way"
    assert await VIEWS.read(server, DAY) == {"sleep": Views(2, 1), "walk": Views(1, 1)}
    assert await VIEWS.all_time(server, before=DAY + 1) == expected, "also while it is put aside"
    assert [await VIEWS.end_rotation(server, DAY, each) for each in ("rot_2", "rot_1", "rot_1")] == [False, True, False]
    assert await VIEWS.all_time(server, before=DAY + 1) == expected
    later = AllTimeViews({"sleep": 3, "walk": 1}, {"sleep": 2, "walk": 1})
    assert await VIEWS.all_time(server, before=DAY + 2) == later
    assert (await VIEWS.read(server, DAY), await VIEWS.earliest(server)) == ({}, DAY + 1)


async def test_a_key_that_holds_something_else_leaves_no_view_half_counted(valkey: Valkey) -> None:
    await VIEWS.viewed(valkey, "sleep", "u1", day=DAY)
    for key in (VIEWS.members_key.at("walk", DAY), VIEWS.values_key.at()):
        await valkey.set(key.name(valkey.layout), "nonsense")
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await VIEWS.viewed(valkey, "walk", "u1", day=DAY)
        await valkey.delete(key.name(valkey.layout))
        assert await VIEWS.read(valkey, DAY) == {"sleep": Views(1, 1)}


async def test_a_late_view_is_added_to_the_totals_once(server: Valkey) -> None:
    await VIEWS.viewed(server, "sleep", "u1", day=DAY)
    await VIEWS.begin_rotation(server, DAY, "rot_1")
    assert await VIEWS.viewed(server, "sleep", "u1", day=DAY) == Viewed("sleep", new=False, late=True)
    await VIEWS.viewed(server, "a:b", "u2", day=DAY)
    await VIEWS.end_rotation(server, DAY, "rot_1")
    expected = AllTimeViews({"sleep": 2, "a:b": 1}, {"sleep": 1})
    assert await VIEWS.late(server) == {(DAY, "sleep"): 1, (DAY, "a:b"): 1}
    assert await VIEWS.all_time(server, before=DAY + 1) == expected
    assert await VIEWS.begin_late(server, "late_1") == ("late_1", {(DAY, "sleep"): 1, (DAY, "a:b"): 1})
    assert await VIEWS.all_time(server, before=DAY + 1) == expected, "also while they are put aside"
    await VIEWS.viewed(server, "sleep", "u3", day=DAY)
    assert (await VIEWS.begin_late(server, "late_2"))[0] == "late_1"  # type: ignore[index]
    assert [await VIEWS.end_late(server, each) for each in ("late_2", "late_1", "late_1")] == [False, True, False]
    assert await VIEWS.all_time(server, before=DAY + 1) == AllTimeViews({"sleep": 3, "a:b": 1}, {"sleep": 1})
    assert await VIEWS.begin_late(server, "late_3") == ("late_3", {(DAY, "sleep"): 1})


async def test_the_older_spelling_keeps_both_earliest_keys_alike(server: Valkey) -> None:
    await OLD.viewed(server, "sleep", "u1", day=DAY)
    assert [await key.at().get(server) for key in OLD.earliest_keys] == [DAY, DAY]
    await OLD.earliest_keys[0].at().delete(server)
    await OLD.viewed(server, "sleep", "u2", day=DAY + 1)
    assert [await key.at().get(server) for key in OLD.earliest_keys] == [DAY, DAY]
    await OLD.begin_rotation(server, DAY, "rot_1")
    assert await OLD.end_rotation(server, DAY, "rot_1")
    assert [await key.at().get(server) for key in OLD.earliest_keys] == [DAY + 1, DAY + 1]
    assert await OLD.all_time(server, before=DAY + 2) == AllTimeViews({"sleep": 2}, None)


async def test_an_earliest_kept_by_value_becomes_one_number(server: Valkey) -> None:
    key = VIEWS.earliest_keys[0].at()
    for read in (lambda: VIEWS.earliest(server), lambda: VIEWS.begin_rotation(server, DAY, "x"),
                 lambda: VIEWS.all_time(server, before=DAY), lambda: VIEWS.viewed(server, "sleep", "u1", day=DAY)):
        await key.delete(server)
        await server.hset(key.name(server.layout), mapping={"sleep": DAY - 1, "walk": DAY - 2})
        await read()
        assert await key.get(server) == DAY - 2
    assert await VIEWS.earliest(server) == DAY - 2


async def test_values_beyond_the_most_are_counted_as_other(server: Valkey) -> None:
    told = [await FEW.viewed(server, value, "u1", day=DAY) for value in ("a", "b", "c", "a", "other", "d")]
    assert [one.value for one in told] == ["a", "b", "other", "a", "other", "other"]
    assert await FEW.read(server, DAY) == {"a": Views(2, 1), "b": Views(1, 1), "other": Views(3, 1)}
    assert (await FEW.viewed(server, "c", "u1", day=DAY + 1)).value == "c", "every day begins anew"
    await FEW.begin_rotation(server, DAY, "rot_1")
    late = [await FEW.viewed(server, value, "u1", day=DAY) for value in ("a", "b", "c", "a")]
    assert [one.value for one in late] == ["a", "b", "other", "a"]


async def test_what_is_no_value_or_day_is_refused_and_nothing_is_written(server: Valkey) -> None:
    for value, day in (("", DAY), ("x" * 201, DAY), ("a\nb", DAY), ("a", -1), ("a", DAY + 1)):
        with pytest.raises(DeclarationError, match="interactive_prompt_sessions"):
            await VIEWS.viewed(server, value, "u1", day=day, today=DAY)
    assert await server.dbsize() == 0
    with pytest.raises(DeclarationError, match="most_values"):
        DimensionViews(Keyspace("x"), "stats:x", zone=ZONE, most_values=0, purpose="a test")


@on_both
def test_views_follow_a_plain_model_whatever_dies(request: pytest.FixtureRequest, place: str) -> None:
    class Machine(RotatingMachine):
        family = VIEWS

        def __init__(self, url: str, servers: list[Any]) -> None:
            super().__init__(url, servers)
            self.views: Multiset[tuple[int, str]] = Multiset()
            self.users: dict[tuple[int, str], set[str]] = {}
            self.late: Multiset[tuple[int, str]] = Multiset()

        async def store_day(self, on: Any, day: int, rotation_id: str) -> None:
            read = await VIEWS.read(on, day)
            if self.once(rotation_id):
                for value, views in read.items():
                    assert views.users == len(self.users[day, value])
                    self.stored[day, value] += views.views

        @rule(value=st.sampled_from(("sleep", "walk", "a:b")), member=st.sampled_from("abc"), ago=st.integers(0, 3))
        def view(self, value: str, member: str, ago: int) -> None:
            day = self.today - ago
            told = self.run(lambda: VIEWS.viewed(self.client, value, member, day=day))
            assert told.late == self.is_rotated(day)
            if told.late:
                self.late[day, value] += 1
                return
            members = self.users.setdefault((day, value), set())
            assert told.new == (member not in members)
            members.add(member)
            self.views[day, value] += 1

        @invariant()
        def totals_of_all_time_are_all_that_was_counted(self) -> None:
            found = self.run(lambda: VIEWS.all_time(self.client, before=self.today + 1))
            views: Multiset[str] = Multiset()
            for (_, value), amount in (*self.views.items(), *self.late.items()):
                views[value] += amount
            users: Multiset[str] = Multiset()
            for (_, value), members in self.users.items():
                users[value] += len(members)
            assert (found.views, found.users) == (views, users)

        def teardown(self) -> None:
            try:
                self.everything_leaves()
                assert (self.stored, self.late_stored) == (self.views, self.late)
                check_no_undeclared_keys(Registry([CONTENT], self.client.layout), *self.servers)
                left = {key.partition(b"sessions:")[2] for server in self.servers for key in server.call("KEYS", "*")}
                assert left <= {b"bysubcat:subcategories", b"bysubcat:earliest", b"bysubcat:rotation",
                                b"bysubcat:total_views", b"bysubcat:total_users"}
            finally:
                super().teardown()

    play(request, place, Machine, examples=20, steps=40)


async def test_counts_that_someone_spoiled_stop_a_rotation_before_anything_is_added(server: Valkey) -> None:
    for value in ("sleep", "walk"):
        await VIEWS.viewed(server, value, "u1", day=DAY)
    await VIEWS.begin_rotation(server, DAY, "rot_1")
    await server.hset(VIEWS.views_key.at().name(server.layout), "walk", "many")
    with pytest.raises(ResponseError, match="not a whole number"):
        await VIEWS.end_rotation(server, DAY, "rot_1")
    await server.hset(VIEWS.aside_key.at(DAY).name(server.layout), "walk", "many")
    with pytest.raises(Corrupt, match="total_views:19331"):
        await VIEWS.read(server, DAY)
    await server.hset(VIEWS.aside_key.at(DAY).name(server.layout), "walk", 1)
    await server.hdel(VIEWS.views_key.at().name(server.layout), "walk")
    assert await VIEWS.end_rotation(server, DAY, "rot_1"), "once it is mended"
    assert (await VIEWS.all_time(server, before=DAY + 1)).views == {"sleep": 1, "walk": 1}


async def test_a_day_of_very_many_values_leaves_whole(valkey: Valkey) -> None:
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(1001):
            VIEWS.viewed(pipeline, f"value {number}", "u1", day=DAY)
            VIEWS.viewed(pipeline, f"value {number}", f"u{number % 2}", day=DAY)
        await pipeline.execute()
    day = await VIEWS.read(valkey, DAY)
    assert (len(day), day["other"]) == (1001, Views(2, 2))
    await VIEWS.begin_rotation(valkey, DAY, "rot_1")
    assert await VIEWS.end_rotation(valkey, DAY, "rot_1")
    found = await VIEWS.all_time(valkey, before=DAY + 1)
    assert found == AllTimeViews({value: one.views for value, one in day.items()},
                                 {value: one.users for value, one in day.items()})
    assert len(await valkey.keys("*:subs")) == 0
