"""Counts by day and row."""

from collections import Counter as Multiset
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import AtMost, FlagKey, Keyspace, Registry
from keystead.patterns.rows_by_day import LateChange, RowsAdded, RowsByDay
from keystead.testing.checks import check_no_undeclared_keys
from tests.patterns.machines import on_both, play
from tests.patterns.rotating import DAY, RotatingMachine

ZONE = "America/Los_Angeles"
MEMBERS = Keyspace("members", tag="members")
SPELLED: dict[str, Any] = {
    "rows": "stats:visitors:daily:{unix_date}:utms", "counts": "stats:visitors:daily:{utm}:{unix_date}:counts",
    "earliest": "stats:visitors:daily:earliest", "fields": ("visits", "preexisting", "last_click_signups"),
}
ROWS = RowsByDay(MEMBERS, **SPELLED, zone=ZONE, table="daily_utm_conversion_stats", most_rows=3,
                 other="utm_source=other", purpose="visits by campaign")
DONE = FlagKey(MEMBERS, "counted:{uid}", ttl=AtMost(60), purpose="a test")
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def counts(**fields: int) -> dict[str, int]:
    return {**dict.fromkeys(ROWS.fields, 0), **fields}


def test_it_is_declared_under_the_documented_keys() -> None:
    assert {"stats:visitors:daily:{unix_date}:utms", "stats:visitors:daily:{utm}:{unix_date}:counts",
            "stats:visitors:daily:earliest"} <= {declaration.pattern for declaration in Registry([MEMBERS])}
    assert (ROWS.name, len(ROWS.fields)) == ("visitors", 3)


async def test_changes_of_several_rows_are_one_step_and_may_be_negative(server: Valkey) -> None:
    changes = [("utm_source=a", "visits", 2), ("utm_source=b", "last_click_signups", -1), ("utm_source=a", "visits", 1)]
    assert await ROWS.add(server, changes, at=NOON) == RowsAdded()
    assert await ROWS.read(server, DAY) == {
        "utm_source=a": counts(visits=3), "utm_source=b": counts(last_click_signups=-1)}
    assert await ROWS.earliest(server) == DAY


async def test_rows_nobody_verified_are_bounded_and_verified_ones_are_not(server: Valkey) -> None:
    for number in range(5):
        told = await ROWS.add(server, [(f"utm_source={number}", "visits", 1)], day=DAY)
        assert told == RowsAdded(overflow=number >= 3)
    verified = [(f"utm_source=known{number}", "visits", 1) for number in range(4)]
    assert await ROWS.add(server, verified, day=DAY, verified={row for row, _, _ in verified}) == RowsAdded()
    assert await ROWS.add(server, [("utm_source=0", "visits", 1)], day=DAY) == RowsAdded(), "it was there before"
    rows = await ROWS.read(server, DAY)
    assert {row: fields["visits"] for row, fields in rows.items()} == {
        "utm_source=0": 2, "utm_source=1": 1, "utm_source=2": 1, "utm_source=other": 2,
        **{row: 1 for row, _, _ in verified}}
    assert await ROWS.add(server, [("utm_source=9", "visits", 1)], day=DAY + 1) == RowsAdded(), "a new day"


async def test_a_day_leaves_row_by_row(server: Valkey) -> None:
    rows = {f"utm_source=s{number}" for number in range(30)}
    await ROWS.add(server, [(row, "visits", 1) for row in rows], day=DAY, verified=rows)
    assert await ROWS.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await ROWS.read_aside(server, DAY, "rot_2") is None
    assert not await ROWS.end_rotation(server, DAY, "rot_1"), "rows are left"
    assert set(await ROWS.read(server, DAY)) == rows
    seen: set[str] = set()
    while batch := await ROWS.read_aside(server, DAY, "rot_1", 7):
        assert len(batch) <= 7 and not seen & batch.keys()
        seen |= batch.keys()
        assert await ROWS.finish_rows(server, DAY, "rot_2", batch) == 0
        assert await ROWS.finish_rows(server, DAY, "rot_1", batch) == len(batch)
        assert await ROWS.finish_rows(server, DAY, "rot_1", batch) == 0
    assert seen == rows
    assert [await ROWS.end_rotation(server, DAY, "rot_1") for _ in range(2)] == [True, False]
    assert (await ROWS.earliest(server), await ROWS.read(server, DAY)) == (DAY + 1, {})


async def test_a_late_change_can_be_stored_exactly(server: Valkey) -> None:
    await ROWS.add(server, [("utm_source=a", "visits", 1)], day=DAY)
    await ROWS.begin_rotation(server, DAY, "rot_1")
    changes = [("utm_source=a", "last_click_signups", -1), ("utm_source=b", "visits", 2)]
    assert await ROWS.add(server, changes, day=DAY) == RowsAdded(late=2)
    assert await ROWS.read(server, DAY) == {"utm_source=a": counts(visits=1)}
    await server.rpush(ROWS.late_key.at().name(server.layout), b"nonsense")
    late = await ROWS.late(server, now=NOON)
    assert [(one.change.unix_date, one.change.row, one.change.field, one.change.amount) for one in late] == [
        (DAY, *changes[0]), (DAY, *changes[1])]
    assert len({one.change.id for one in late}) == 2
    assert await ROWS.finish_late(server, late[:1]) == 1
    assert [one.change for one in await ROWS.late(server, now=NOON)] == [late[1].change]
    assert isinstance(late[0].change, LateChange)
    assert await ROWS.late_dead_key.at().length(server) == 1


async def test_a_late_change_of_very_many_is_exact(valkey: Valkey) -> None:
    await ROWS.add(valkey, [("utm_source=a", "visits", 1)], day=DAY)
    await ROWS.begin_rotation(valkey, DAY, "rot_1")
    row = "utm_source=" + '"\\ü\U0001f600:' * 20
    await ROWS.add(valkey, [(row, "visits", 1 - 10**12)] * 999, day=DAY)
    (late,) = await ROWS.late(valkey, now=NOON)
    assert (late.change.row, late.change.amount) == (row, 999 * (1 - 10**12))


async def test_a_row_that_another_program_named_badly_is_told_as_such(valkey: Valkey) -> None:
    await ROWS.add(valkey, [("utm_source=a", "visits", 1)], day=DAY)
    await valkey.sadd(ROWS.rows_key.at(DAY).name(valkey.layout), "two\nlines")
    with pytest.raises(Corrupt, match=r"utms.*two"):
        await ROWS.read(valkey, DAY)
    await ROWS.begin_rotation(valkey, DAY, "rot_1")
    with pytest.raises(Corrupt, match=r"utms.*two"):
        await ROWS.read_aside(valkey, DAY, "rot_1")


async def test_misuse_is_refused_by_name_and_nothing_is_written(server: Valkey) -> None:
    good = ("utm_source=a", "visits", 1)
    for changes, says in (([good, ("utm_source=a", "visit", 1)], "no field 'visit'"),
                          ([good, ("utm_source=a", "visits", 1.5)], "whole number"),
                          ([good, ("utm_source=a", "visits", 10**13)], "whole number"),
                          ([good, ("", "visits", 1)], "characters"), ([good, ("a\nb", "visits", 1)], "control"),
                          ([good] * 1001, "at most 1000")):
        with pytest.raises(DeclarationError, match=says):
            await ROWS.add(server, changes, day=DAY)
    with pytest.raises(DeclarationError, match="visitors: day 19332 lies in the future"):
        await ROWS.add(server, [good], day=DAY + 1, today=DAY)
    assert await ROWS.add(server, [("utm_source=a", "visits", 0)], day=DAY) == RowsAdded()
    assert await server.dbsize() == 0
    for wrong in ({"fields": ()}, {"fields": ("a", "a")}, {"most_rows": 0}, {"counts": "stats:x:{unix_date}"},
                  {"rows": "stats:x:{a}:{unix_date}"}):
        with pytest.raises(DeclarationError):
            RowsByDay(Keyspace("x"), zone=ZONE, purpose="a test", **{**SPELLED, **wrong})


async def test_a_key_that_holds_something_else_leaves_nothing_half_counted(server: Valkey) -> None:
    changes, done = [("utm_source=a", "visits", 1), ("utm_source=b", "visits", 1)], DONE.at("1")
    counts_of_b = ROWS.counts_key.at(utm="utm_source=b", unix_date=DAY).name(server.layout)
    await server.hset(counts_of_b, "visits", "many")
    for key in (ROWS.late_key.at(), ROWS.rows_key.at(DAY), ROWS.unverified_key.at(DAY), ROWS.earliest_key.at(), None):
        if key is not None:
            await server.set(key.name(server.layout), "nonsense")
        with pytest.raises(ErrorReply):
            await ROWS.add(server, changes, day=DAY)
        with pytest.raises(ErrorReply):
            await ROWS.add_once(server, done, changes, held_seconds=60, day=DAY)
        if key is not None:
            await server.delete(key.name(server.layout))
        assert [await node.call(("KEYS", "*")) for node in await server.nodes() if await node.call(("DBSIZE",))] == [
            [counts_of_b]]
    await server.delete(counts_of_b)
    told = [await ROWS.add_once(server, done, changes, held_seconds=60, day=DAY) for _ in range(2)]
    assert told == [RowsAdded(), None]


@on_both
def test_rows_follow_a_plain_model_whatever_dies(request: pytest.FixtureRequest, place: str) -> None:
    class Machine(RotatingMachine):
        family = ROWS

        def __init__(self, url: str, servers: list[Any]) -> None:
            super().__init__(url, servers)
            self.log: Multiset[tuple[int, str]] = Multiset()  # day and field, over all rows: overflow moves only rows
            self.rows: Multiset[tuple[int, str, str]] = Multiset()  # of rows that are verified

        async def store_day(self, on: Any, day: int, rotation_id: str) -> None:
            while batch := await ROWS.read_aside(on, day, rotation_id, 2):
                for row, fields in batch.items():
                    if self.once(f"{rotation_id} {row}"):
                        self.stored.update({(day, row, field): amount for field, amount in fields.items()})
                await ROWS.finish_rows(on, day, rotation_id, batch)

        async def store_late(self, on: Any) -> None:
            late = await ROWS.late(on, 3, now=NOON)
            for one in late:
                if self.once(one.change.id):
                    self.stored[one.change.unix_date, one.change.row, one.change.field] += one.change.amount
            if late:
                await ROWS.finish_late(on, late)

        @rule(changes=st.lists(st.tuples(st.sampled_from(["k=1", "k=2", "u=1", "u=2", "u=3", "u=4", "u:5"]),
                                         st.sampled_from(["visits", "preexisting"]), st.integers(-2, 3)), max_size=4),
              ago=st.integers(0, 3))
        def add(self, changes: list[tuple[str, str, int]], ago: int) -> None:
            day = self.today - ago
            told = self.run(lambda: ROWS.add(self.client, changes, day=day, verified={"k=1", "k=2"}))
            assert bool(told.late) == (self.is_rotated(day) and any(amount for _, _, amount in changes))
            for row, field, amount in changes:
                self.log[day, field] += amount
                if row.startswith("k"):
                    self.rows[day, row, field] += amount

        def sums(self, counted: Multiset[tuple[int, str, str]]) -> Multiset[tuple[int, str]]:
            sums: Multiset[tuple[int, str]] = Multiset()
            for (day, _, field), amount in counted.items():
                sums[day, field] += amount
            return sums

        @invariant()
        def a_day_has_few_rows_that_nobody_verified(self) -> None:
            rows = self.run(lambda: ROWS.read(self.client, self.today))
            assert len([row for row in rows if row.startswith(("u:", "u="))]) <= 3

        def teardown(self) -> None:
            try:
                self.everything_leaves()
                for _ in range(60):
                    self.run(lambda: self.store_late(self.client))
                assert nonzero(self.sums(self.stored)) == nonzero(self.log)
                verified = {place: n for place, n in self.stored.items() if place[1].startswith("k")}
                assert nonzero(verified) == nonzero(self.rows)
                check_no_undeclared_keys(Registry([MEMBERS], self.client.layout), *self.servers)
                left = {key.partition(b"daily:")[2] for server in self.servers for key in server.call("KEYS", "*")}
                assert left <= {b"earliest", b"rotation"}
            finally:
                super().teardown()

    play(request, place, Machine, examples=20, steps=40)


def nonzero(counted: dict[Any, int]) -> dict[Any, int]:
    return {place: amount for place, amount in counted.items() if amount}
