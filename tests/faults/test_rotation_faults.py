"""Rotation while those who rotate die: at every call and statement, at random, and by kill -9."""

import asyncio
import contextlib
import random
from typing import Any

from keystead import dates
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.stats.catalogue import Catalogue
from keystead.stats.rotation import Rotation
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer
from tests.patterns.crash import Died, Mortal
from tests.stats import counted
from tests.stats.event_log import EventLog, stored

from .rotation_chaos import BACK, FIRST_DAY, ZONE, fire, noon
from .rotation_faults import MortalDatabase

KINDS = (
    counted.EVENTS, counted.CHANGES, counted.REMINDED, counted.ACTIVE, counted.JOINED, counted.RETENTION, counted.VIEWS,
    counted.VISITS,
)


def mortal_rotation(
    valkey: Valkey, database: Database, tables: FamilyTables, day: int, dies_at: int, catalogue: Catalogue
) -> Any:
    """A rotation at noon of the day, and the life of the one who does it."""
    mortal = Mortal(valkey, dies_at, after=False)
    mortals: tuple[Any, Any] = mortal, MortalDatabase(database, mortal)
    return mortal, Rotation(*mortals, catalogue, MovableClock(now=noon(day)), tables=tables)


async def test_dying_at_any_step_neither_loses_nor_doubles(valkey: Valkey, database: Database) -> None:
    """For each kind: a day and late counts are waiting, and the one who rotates dies ever later, until it lives."""
    rng = random.Random(5)
    for one in KINDS:
        catalogue = counted.catalogue(one)
        tables, log = FamilyTables(catalogue), EventLog(catalogue, rng)
        await tables.ensure(database)
        day, dies_at, lived = FIRST_DAY, 0, False
        while not lived:
            day, dies_at = day + 1, dies_at + 1
            assert dies_at < 100, "it should have ended by now"
            for back in (0, one.held_days, one.held_days, one.held_days + 2):  # the last one is late
                await log.count_on(valkey, one, day - back, 0)
            mortal, rotation = mortal_rotation(valkey, database, tables, day, dies_at, catalogue)
            with contextlib.suppress(Died):
                await rotation.run()
            lived = not mortal.dead
            where = one.name, dies_at
            assert (where, await stored(valkey, database, catalogue, day, tables)) == (where, log.expected())
            report = await Rotation(valkey, database, catalogue, MovableClock(now=noon(day)), tables=tables).run()
            assert (where, await stored(valkey, database, catalogue, day, tables)) == (where, log.expected())
            assert (await one.earliest(valkey) or day) > day - one.held_days
            assert [problem for problem in report.problems if " is not " not in problem] == []
        assert dies_at > 15  # both days and late counts were in it


async def test_a_hundred_random_deaths_while_counting_goes_on(valkey: Valkey, database: Database) -> None:
    rng, catalogue = random.Random(6), counted.catalogue()
    log, tables, deaths = EventLog(catalogue, rng), FamilyTables(catalogue), 0
    names = [one.name for one in catalogue if one.table is not None]
    await tables.ensure(database)

    async def count(today: int) -> None:
        for _ in range(9):
            month = dates.unix_month(noon(today), ZONE)
            await log.count(valkey, today - rng.randrange(BACK), month - rng.randrange(2))

    async def rotate(today: int) -> int:
        dies_at = rng.randint(1, rng.choice((40, 400)))
        mortal, rotation = mortal_rotation(valkey, database, tables, today, dies_at, catalogue)
        try:
            await rotation.run(rng.sample(names, 4))
        except Died:
            pass
        except Unavailable as error:  # PostgreSQL may undo one of two who wait for each other
            assert "for the sake of another" in str(error)
        return int(mortal.dead)

    for number in range(100):
        today = FIRST_DAY + number // 2
        _, *died = await asyncio.gather(count(today), rotate(today), rotate(today))
        deaths += sum(died)
        found = await stored(valkey, database, catalogue, today, tables)
        assert (number, found) == (number, log.expected())
    assert 50 < deaths < 200  # some die, and some come to the end
    await Rotation(valkey, database, catalogue, MovableClock(now=noon(today))).run()
    assert await stored(valkey, database, catalogue, today, tables) == log.expected()


async def test_programs_killed_at_any_moment_lose_and_double_nothing(
    valkey: Valkey, valkey_server: LocalServer, database: Database, database_url: str
) -> None:
    report = await fire(valkey, valkey_server.url, database, database_url, 3, random.Random(8))
    assert report.wrong == []
    assert report.kills == 6 and report.counted >= 180
