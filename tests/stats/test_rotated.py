"""Whether yesterday rotated: from what the server still holds, what the tables got, and when the job ran."""

from datetime import UTC, datetime

from keystead.engine import Valkey
from keystead.jobs import JobBook
from keystead.stats import Catalogue, Rotation
from keystead.stats.jobs import ROTATE, register
from keystead.stats.rotated import due_times, rotation_standing
from keystead.store import Database
from keystead.testing.clock import MovableClock
from tests.stats.test_catalogue import ORDERS

NOON = 1_670_241_600.0  # 2022-12-05 12:00 UTC, day 19331
DAY = 86_400.0
CATALOGUE = Catalogue.of(ORDERS)


async def test_late_days_are_named_until_the_rotation_has_run(valkey: Valkey, database: Database) -> None:
    clock, book = MovableClock(now=NOON), JobBook()
    rotation = Rotation(valkey, database, CATALOGUE, clock)
    register(book, rotation, valkey, clock)
    await rotation.run()  # makes the tables
    stands = await rotation_standing(valkey, database, CATALOGUE, clock)
    assert (stands.run, stands.rows, stands.late, stands.is_late) == (None, 0, {}, False)
    await ORDERS.incr(valkey, "placed", at=NOON - 3 * DAY)
    stands = await rotation_standing(valkey, database, CATALOGUE, clock)
    assert stands.late == {ORDERS.name: "2022-12-02"} and stands.is_late and not stands.is_running
    found = book.get(ROTATE)
    assert found is not None
    await found.function()
    stands = await rotation_standing(valkey, database, CATALOGUE, clock)
    assert stands.late == {} and not stands.is_late and (stands.rows, stands.families) == (3, 1)
    assert stands.run is not None and stands.run.days == 3
    clock.advance(2 * DAY)
    assert (await rotation_standing(valkey, database, CATALOGUE, clock)).rows == 0, "of the last 24 hours"


def test_the_rotation_is_due_at_the_times_that_families_name():
    due_at, next_at = due_times(CATALOGUE, NOON)
    assert due_at is not None and next_at is not None and due_at <= NOON < next_at
    assert next_at - due_at == DAY
    at = datetime.fromtimestamp(due_at, ORDERS.home)
    assert at.time() == ORDERS.rotates_at
    assert due_times(Catalogue(), NOON) == (None, None)
    assert datetime.fromtimestamp(NOON, UTC).hour == 12
