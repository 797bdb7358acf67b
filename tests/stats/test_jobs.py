"""The rotation as a job: when it runs, and what it leaves behind."""

from keystead.app import App
from keystead.engine import Valkey
from keystead.jobs import JobBook
from keystead.settings import Settings
from keystead.stats import Catalogue, Rotation
from keystead.stats.jobs import ROTATE, recurring, register
from keystead.stats.keys import ROTATION_RUN
from keystead.store import Database
from keystead.telemetry import counts
from keystead.testing.clock import MovableClock
from tests.stats.test_catalogue import ORDERS

NOON = 1_670_241_600.0  # 2022-12-05 12:00 UTC, day 19331


def test_the_calendar_has_every_time_that_a_family_names():
    times = {str(one.when) for one in recurring(App(Settings()).catalogue())}
    assert times == {
        "hours 0; minutes 15; seconds 0 in America/Los_Angeles", "hours 2; minutes 0; seconds 0 in America/Los_Angeles",
    }
    assert len(recurring(Catalogue())) == 0


async def test_a_run_rotates_and_leaves_what_it_did(valkey: Valkey, database: Database) -> None:
    clock, book = MovableClock(now=NOON), JobBook()
    register(book, Rotation(valkey, database, Catalogue.of(ORDERS), clock), valkey, clock)
    await ORDERS.incr(valkey, "placed", at=NOON - 3 * 86400)
    found = book.get(ROTATE)
    assert found is not None
    assert await found.function() == {"days": 3, "late": 0, "problems": 0}
    run = await ROTATION_RUN.at().get(valkey)
    assert run is not None and (run.days, run.stop_reason) == (3, "list_exhausted")
    assert run.started_at is not None and run.finished_at is not None and run.finished_at >= run.started_at
    assert await ORDERS.earliest(valkey) == 19331


async def test_what_a_run_could_not_do_is_told_in_the_log(valkey: Valkey, database: Database, caplog) -> None:
    clock, book = MovableClock(now=NOON), JobBook()
    register(book, Rotation(valkey, database, Catalogue.of(ORDERS), clock), valkey, clock)
    await valkey.set(ORDERS.earliest_key.at().name(valkey.layout), "soon")
    before = counts.value("stats_rotation_problems")
    found = book.get(ROTATE)
    assert found is not None
    assert await found.function() == {"days": 0, "late": 0, "problems": 1}
    told = [record.getMessage() for record in caplog.records if record.name == "keystead.stats"]
    assert len(told) == 1 and f"{ORDERS.name}: " in told[0] and "earliest" in told[0]
    assert counts.value("stats_rotation_problems") - before == 1
