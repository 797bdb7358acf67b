"""The sweep of files: what holds it up, what does not, and what is told of it."""

import asyncio
import logging
import time

import pytest

from keystead.errors import GatewayError, Unavailable
from keystead.store.files import new_key
from keystead.store.files_kept import Promised
from keystead.store.keys import FILES_PURGATORY, FILES_SWEEP
from keystead.store.models import PurgeEntry
from keystead.store.sweep import FEW_STRAYS, Sweep, SweepReport
from keystead.telemetry import counts

from .file_place import DAY, Place
from .test_files import listed, pieces


async def orphan(place: Place, key: str, *, expected: bool = False) -> None:
    await place.objects.write(key, pieces(b"x"))
    entry = PurgeEntry(bucket="files", key=key, expected=expected)
    await FILES_PURGATORY.at().add(place.valkey, entry, place.clock.now())


async def test_more_than_one_step_is_swept_in_one_run(place: Place) -> None:
    for number in range(12):
        await orphan(place, f"a/{number}")
    later = PurgeEntry(bucket="files", key="later")
    await FILES_PURGATORY.at().add(place.valkey, later, place.clock.now() + 1)
    report = await place.sweep.run()
    assert (report.purged, report.kept, report.failed, report.busy) == (12, 0, 0, False)
    assert await listed(place.objects) == []
    assert await place.listed() == [later]


async def test_only_unexpected_purges_are_warned_of(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    before = counts.value("files_purged", expected="no"), counts.value("files_purged", expected="yes")
    await orphan(place, "a/wanted", expected=True)
    await orphan(place, "a/left")
    with caplog.at_level(logging.WARNING, logger="keystead.store"):
        await place.sweep.run()
    assert "a/left" in caplog.text and "a/wanted" not in caplog.text
    after = counts.value("files_purged", expected="no"), counts.value("files_purged", expected="yes")
    assert after == (before[0] + 1, before[1] + 1)


async def test_what_fails_holds_up_nothing_else_and_is_told_after_five_times(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = PurgeEntry(bucket="elsewhere", key="a/x")
    odd = PurgeEntry(bucket="files", key="../x")
    for entry in (foreign, odd):
        await FILES_PURGATORY.at().add(place.valkey, entry, 1.0)
    await place.valkey.zadd(b"files:purgatory", {b"nonsense": 1.0})
    await orphan(place, "a/fine")
    report = await place.sweep.run()
    assert (report.purged, report.failed) == (1, 3)
    stuck = counts.value("files_purge_stuck")
    for passed in (60, 120, 240):
        place.clock.advance(passed)
        assert (await place.sweep.run()).failed == 3
        assert (await place.sweep.run()).failed == 0
    assert counts.value("files_purge_stuck") == stuck
    place.clock.advance(480)
    with caplog.at_level(logging.ERROR, logger="keystead.store"):
        await place.sweep.run()
    assert counts.value("files_purge_stuck") == stuck + 3
    assert caplog.text.count("cannot be purged") == 3
    assert "elsewhere" in caplog.text and "nonsense" in caplog.text
    assert await place.valkey.zcard(b"files:purgatory") == 3


class Away:
    """Object files that do not answer."""

    bucket = "files"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def delete(self, key: str) -> None:
        raise self.error


@pytest.mark.parametrize("error", [Unavailable("away"), GatewayError("denied", transient=False)])
async def test_an_object_that_cannot_be_deleted_now_is_deleted_later(place: Place, error: Exception) -> None:
    await orphan(place, "a/one")
    sweep = Sweep(place.valkey, place.database, Away(error), place.clock)  # type: ignore[arg-type]
    assert (await sweep.run()).failed == 1
    assert await listed(place.objects) == ["a/one"]
    place.clock.advance(60)
    assert (await place.sweep.run()).purged == 1
    assert await listed(place.objects) == await place.listed() == []


async def test_one_sweep_works_at_a_time(place: Place) -> None:
    await orphan(place, "a/one")
    async with FILES_SWEEP.at().hold(place.valkey, place.clock):
        report = await place.sweep.run()
    assert report.busy and report.purged == 0
    reports = await asyncio.gather(*(place.sweep.run() for _ in range(4)))
    assert sum(report.purged for report in reports) == 1


async def test_a_sweep_that_is_told_to_stop_leaves_the_rest(place: Place) -> None:
    for number in range(12):
        await orphan(place, f"a/{number}")
    answers = iter([False, False, True])
    sweep = Sweep(place.valkey, place.database, place.objects, place.clock, stopping=lambda: next(answers))
    assert (await sweep.run()).purged == 10
    assert len(await place.listed()) == 2


async def test_an_object_that_came_back_after_its_purge_is_found_a_week_later(place: Place) -> None:
    """A process stood still for long, then made its object appear, and died before it could list it again."""
    await orphan(place, "a/late")
    await place.sweep.run()
    await place.objects.write("a/late", pieces(b"x"))
    assert await place.listed() == []
    place.clock.advance(6 * DAY)
    assert (await place.sweep.run()).looked_again == 0
    place.clock.advance(DAY + 1)
    assert (await place.sweep.run()).looked_again == 1
    assert await place.check() == []


async def test_the_second_look_ends_when_the_time_of_the_run_is_over(place: Place) -> None:
    await orphan(place, "a/late")
    await place.sweep.run()
    place.clock.advance(8 * DAY)
    report = SweepReport()
    await place.sweep._look_again(report, ends_at=time.monotonic())
    assert report.looked_again == 0 and await place.forbidden() == 1
    assert (await place.sweep.run()).looked_again == 1


async def test_the_second_look_waits_for_a_store_that_is_away(place: Place) -> None:
    await orphan(place, "a/late")
    await place.sweep.run()
    place.clock.advance(8 * DAY)
    sweep = Sweep(place.valkey, place.database, Away(Unavailable("away")), place.clock)  # type: ignore[arg-type]
    assert (await sweep.run()).looked_again == 0
    assert await place.forbidden() == 1
    assert (await place.sweep.run()).looked_again == 1


async def test_objects_that_a_lost_list_forgot_are_found_by_a_walk(place: Place) -> None:
    saved = [await place.save() for _ in range(3)]
    for _ in range(4):
        await orphan(place, new_key("b"))
    await place.objects.write("b/their-photo.png", pieces(b"not ours"))
    await place.valkey.flushall()
    assert await place.sweep.list_strays() == 4
    assert await place.sweep.list_strays() == 0
    assert (await place.sweep.run()).purged == 0, "one that is being saved gets its time"
    await place.sweep_everything()
    assert await listed(place.objects) == sorted(["b/their-photo.png", *(file.key for file in saved)])


async def test_a_walk_over_the_files_of_another_database_lists_none(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await place.save()
    for _ in range(FEW_STRAYS + 1):
        await place.objects.write(new_key("b"), pieces(b"of another installation"))
    with caplog.at_level(logging.ERROR, logger="keystead.store"):
        assert await place.sweep.list_strays() == 0
    assert "is this their database" in caplog.text and await place.listed() == []


async def test_a_file_that_is_being_saved_survives_the_walk(place: Place) -> None:
    async with place.files.saving(pieces(b"x"), under="a", promised=Promised(10)) as (_, file):
        assert await place.sweep.list_strays() == 0, "it is listed already"
        await place.valkey.flushall()
        assert await place.sweep.list_strays() == 1
        sweeping = await place.sweep_takes(file.key)
    report = await sweeping
    assert (report.kept, report.purged) == (1, 0)
    assert await place.check() == [file.key]
