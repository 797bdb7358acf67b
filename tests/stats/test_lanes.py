"""What is counted in several lanes of a cluster: SQL and every reader have the sum, whoever dies where."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from keystead.engine import Valkey
from keystead.jobs import RunFacts
from keystead.keys import Declaration, Keyspace, Layout, RecordKey, Registry
from keystead.patterns import DailyFamily
from keystead.stats import Charts, FamilyTables
from keystead.stats.catalogue import Catalogue
from keystead.stats.keys import STATS
from keystead.stats.lanes import ever_counted
from keystead.stats.rotation import Rotation
from keystead.store import Database
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.clock import MovableClock
from keystead.testing.cluster import LocalCluster

from ..patterns.crash import Died, Mortal
from .counted import LA
from .test_rotation import DAY, at


class Sent(RunFacts, frozen=True, kw_only=True):
    sent: int = 0


ROOM = Keyspace("laned", tag="room", laned=True)
TEXTS = DailyFamily(
    ROOM, "texts", counts=("found",), breakdowns={"failed": "status"}, held_days=1, zone=LA, table="text_stats",
    identities=("found = failed",), purpose="a test",
)
HELD = DailyFamily(ROOM, "held", counts=("seen",), held_days=1, zone=LA, kept_seconds=3600.0, purpose="a test")
RUN = RecordKey(ROOM, "stats:texts:send_job", Sent, purpose="a test")
CATALOGUE = Catalogue([TEXTS, HELD, RUN])

pytestmark = pytest.mark.cluster


class MortalLanes(Mortal):
    """A client that dies in whichever lane its last call is."""

    def lanes_of(self, declared: Declaration) -> tuple[Mortal, ...]:
        return tuple(_Lane(self, lane) for lane in self._valkey.lanes_of(declared))


class _Lane(Mortal):
    def __init__(self, whole: MortalLanes, lane: Valkey) -> None:
        super().__init__(lane, 0, after=False)
        self._whole = whole

    async def _mortally(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await self._whole._mortally(call)


async def _count(valkey: Valkey) -> None:
    """Two days; the second lane begins a day later, and has nothing on the last but one."""
    for lane, day, amount in ((0, DAY, 1), (0, DAY + 1, 2), (1, DAY + 1, 30)):
        tally = TEXTS.tally().incr("found", amount=amount, unix_date=day)
        await tally.incr("failed", f"lane {lane}", amount, unix_date=day).store(valkey.lane(lane))


async def _row_counts(database: Database) -> dict[str, int]:
    table = FamilyTables(CATALOGUE).table("texts")
    async with database.reading() as sql:
        return {row.retrieved_for: row.found for row in await sql.execute(table.select())}


async def test_a_row_is_the_sum_of_all_lanes(two_lanes: Valkey, tmp_path: Path, valkey_cluster: LocalCluster) -> None:
    clock = MovableClock(now=at(DAY + 1))
    async with (Database.open(f"sqlite:///{tmp_path}/a.db") as database,
                Charts.open(two_lanes, database, CATALOGUE, clock) as charts):
        assert not await ever_counted(two_lanes, TEXTS)
        await _count(two_lanes)
        await HELD.incr(two_lanes.lane(1), "seen", unix_date=DAY)
        assert await ever_counted(two_lanes, TEXTS) and await ever_counted(two_lanes, HELD)
        await FamilyTables(CATALOGUE).ensure(database)
        assert (await charts.series("texts", DAY, DAY + 2)).counts["found"] == [1, 32]
        clock.advance(86400)
        report = await Rotation(two_lanes, database, CATALOGUE, clock).run()
        assert report.problems == [] and report.by_name["texts"].days == 2 and report.by_name["held"].days == 2
        series = await charts.series("texts", DAY, DAY + 3)
        assert series.counts["found"] == [1, 32, 0]
        assert series.breakdowns["failed"] == {"lane 1": [0, 30, 0], "lane 0": [1, 2, 0]}
        assert list((await _row_counts(database)).values()) == [1, 32]

        # Late in one lane, and new to the other, which had nothing of that day: both are added, each once.
        for lane in two_lanes.lanes:
            await TEXTS.tally().incr("found", amount=100, unix_date=DAY).store(lane)
        assert (await charts.series("texts", DAY, DAY + 3)).counts["found"] == [201, 32, 0]
        await Rotation(two_lanes, database, CATALOGUE, clock).run()
        assert (await charts.series("texts", DAY, DAY + 3)).counts["found"] == [201, 32, 0]
        assert list((await _row_counts(database)).values()) == [201, 32]
        check_no_undeclared_keys(Registry([ROOM, STATS], Layout.tagged(2)), *valkey_cluster.primaries())


async def test_the_last_runs_of_all_lanes_are_one(two_lanes: Valkey, tmp_path: Path) -> None:
    clock = MovableClock(now=at(DAY))
    async with (Database.open(f"sqlite:///{tmp_path}/a.db") as database,
                Charts.open(two_lanes, database, CATALOGUE, clock) as charts):
        for lane, begun in zip(two_lanes.lanes, (100.0, 50.0), strict=True):
            await RUN.at().set(lane, Sent(started_at=begun, finished_at=begun + 9, stop_reason="enough", sent=7))
        [run] = await charts.runs()
        assert (run.started_at, run.finished_at, run.counters) == (50.0, 109.0, {"sent": 14})


async def test_whoever_dies_while_rotating_loses_and_doubles_nothing(two_lanes: Valkey, tmp_path: Path) -> None:
    clock = MovableClock(now=at(DAY + 2))
    at_call, survived = 0, False
    while not survived:
        at_call += 1
        for after in (False, True):
            for node in await two_lanes.nodes():
                await node.flushall()
            await _count(two_lanes)
            async with Database.open(f"sqlite:///{tmp_path}/{at_call}{after}.db") as database:
                tables = FamilyTables(CATALOGUE)
                await tables.ensure(database)
                mortal = MortalLanes(two_lanes, at_call, after=after)
                with contextlib.suppress(Died):
                    await Rotation(mortal, database, CATALOGUE, clock, tables=tables).run(["texts"])  # type: ignore
                survived = not mortal.dead
                async with Charts.open(two_lanes, database, CATALOGUE, clock) as charts:
                    assert (await charts.series("texts", DAY, DAY + 3)).counts["found"] == [1, 32, 0], (at_call, after)
                    report = await Rotation(two_lanes, database, CATALOGUE, clock, tables=tables).run(["texts"])
                    assert report.problems == []
                    assert list((await _row_counts(database)).values()) == [1, 32], (at_call, after)
                    assert (await charts.series("texts", DAY, DAY + 3)).counts["found"] == [1, 32, 0]
    assert at_call > 10



async def test_readers_see_every_count_once_while_several_rotate_and_counting_goes_on(
    two_lanes: Valkey, tmp_path: Path
) -> None:
    clock, rng, first, days = MovableClock(now=at(DAY + 2)), random.Random(5), DAY - 3, 6
    begun, done = [0] * days, [0] * days
    async with (Database.open(f"sqlite:///{tmp_path}/a.db") as database,
                Charts.open(two_lanes, database, CATALOGUE, clock) as charts):
        await FamilyTables(CATALOGUE).ensure(database)

        async def count() -> None:
            for _ in range(250):
                place, amount = rng.randrange(days), rng.randrange(1, 9)
                begun[place] += amount
                await TEXTS.incr(two_lanes.lane(rng.randrange(2)), "found", amount=amount, unix_date=first + place)
                done[place] += amount

        async def rotate() -> None:
            while not counted.done():
                await Rotation(two_lanes, database, CATALOGUE, clock).run(["texts"])
                await asyncio.sleep(rng.random() / 50)

        async def read() -> int:
            reads = 0
            while not counted.done():
                least = list(done)
                found = (await charts.series("texts", first, first + days)).counts["found"]
                assert all(low <= seen <= high for low, seen, high in zip(least, found, begun, strict=True)), (
                    least, found, begun)
                reads += 1
            return reads

        async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
            counted = tasks.create_task(count())
            reading = tasks.create_task(read())
            for _ in range(2):
                tasks.create_task(rotate())
        assert reading.result() > 3
        await Rotation(two_lanes, database, CATALOGUE, clock).run(["texts"])
        assert (await charts.series("texts", first, first + days)).counts["found"] == done
        assert sum((await _row_counts(database)).values()) == sum(done[: days - 1])


async def test_a_day_that_is_rotated_between_asking_the_server_and_sql_is_read_once(
    two_lanes: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovableClock(now=at(DAY + 2))
    async with (Database.open(f"sqlite:///{tmp_path}/a.db") as database,
                Charts.open(two_lanes, database, CATALOGUE, clock) as charts):
        rotation, sources = Rotation(two_lanes, database, CATALOGUE, clock), charts._sources
        await TEXTS.incr(two_lanes.lane(0), "found", amount=1, unix_date=DAY)
        await rotation.run(["texts"])
        await TEXTS.incr(two_lanes.lane(1), "found", amount=10, unix_date=DAY)  # SQL has only the first lane of the day
        ask, rotated = sources.stored, []

        async def rotate_first(*args: Any) -> Any:
            rotated.append((await rotation.run(["texts"])).days)
            return await ask(*args)

        monkeypatch.setattr(sources, "stored", rotate_first)
        assert (await charts.series("texts", DAY, DAY + 3)).counts["found"] == [11, 0, 0]
        assert rotated == [2], "the day of the second lane, and the empty one after it"
