"""Saving, finding, reading and deleting files, and every place where a process may die meanwhile."""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Column, ForeignKey, MetaData, Table, Text, insert, select

from keystead.edge import TooLarge, problem_of
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound, ReplyLost, Unavailable
from keystead.keys import Registry
from keystead.store import Database
from keystead.store.files import open_files
from keystead.store.files_kept import ContentMismatch, FileLost, Files, Promised
from keystead.store.files_tables import FILES
from keystead.store.keys import FILES_PURGATORY, STORE
from keystead.store.models import PurgeEntry
from keystead.store.purgatory import Purge, is_forbidden
from keystead.store.sweep import Sweep
from keystead.testing.clock import MovableClock

from ..patterns.crash import Died
from .conftest import fresh_bucket
from .file_place import DAY, Place
from .mortal import Fate, MortalDatabase, MortalFiles, MortalValkey, fates
from .test_files import listed, pieces, whole


async def test_a_saved_file_is_found_and_read(place: Place) -> None:
    file = await place.save(b"0123456789", content_type="text/plain")
    assert file == await place.files.find(file.uid)
    assert (file.file_size, file.content_type) == (10, "text/plain")
    assert file.sha256 == hashlib.sha256(b"0123456789").hexdigest()
    assert file.key.startswith("some/place/")
    assert b"".join([chunk async for chunk in place.files.read(file)]) == b"0123456789"
    assert b"".join([chunk async for chunk in place.files.read(file, start_byte=2, end_byte=4)]) == b"234"
    assert await place.check() == [file.key]
    with pytest.raises(NotFound, match="s3f_none"):
        await place.files.find("s3f_none")


async def test_a_file_is_announced_while_its_bytes_come_and_kept_alive(place: Place) -> None:
    seen = []

    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(4):
            ((_, due_at),) = await FILES_PURGATORY.at().range(place.valkey)
            seen.append(due_at - place.clock.now())
            assert (await place.sweep.run()).purged == 0
            yield b"x"
            place.clock.advance(400)

    file = await place.files.save(slowly(), under="a", most_bytes=10)
    assert seen == pytest.approx([600, 200, 200, 200])
    assert await place.check() == [file.key]


@pytest.mark.parametrize(("promised", "error", "type"), [
    (Promised(9), TooLarge, "too_large"),
    (Promised(100, exact_bytes=9), ContentMismatch, "content_does_not_match"),
    (Promised(100, exact_bytes=11), ContentMismatch, "content_does_not_match"),
    (Promised(100, sha256="0" * 64), ContentMismatch, "content_does_not_match"),
])
async def test_bytes_that_were_not_promised_are_refused_and_leave_nothing(
    place: Place, promised: Promised, error: type[Exception], type: str
) -> None:
    with pytest.raises(error) as caught:
        async with place.files.saving(pieces(b"0123456789", 3), under="a", promised=promised):
            pass
    assert problem_of(caught.value).type == type
    place.clock.advance(8 * DAY)
    await place.sweep.run()
    assert await place.check() == []


async def test_too_many_bytes_are_not_even_read(place: Place) -> None:
    asked = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield bytes(100)

    with pytest.raises(TooLarge):
        await place.files.save(endless(), under="a", most_bytes=1000)
    assert asked == 11


async def test_a_promise_of_the_right_bytes_is_kept(place: Place) -> None:
    promised = Promised(100, 10, hashlib.sha256(b"0123456789").hexdigest().upper())
    async with place.files.saving(pieces(b"0123456789"), under="a", promised=promised) as (sql, file):
        assert await sql.scalar(select(FILES.c.id).where(FILES.c.uid == file.uid)) == file.id
    assert await place.check() == [file.key]


async def test_a_name_that_cannot_be_is_refused_before_anything_is_listed(place: Place) -> None:
    for under in ("../x", "", "a/", "a b"):
        with pytest.raises(Invalid, match="cannot name a file"):
            await place.save(under=under)
        with pytest.raises(Invalid, match="cannot name a file"):
            await place.files.delete("fine", f"{under}/")
    assert await place.listed() == []


async def test_a_block_that_fails_leaves_nothing(place: Place) -> None:
    with pytest.raises(ValueError, match="no"):
        async with place.files.saving(pieces(b"x"), under="a", promised=Promised(10)):
            raise ValueError("no")
    assert await place.rows() == await listed(place.objects) == await place.listed() == []


async def test_a_file_that_was_purged_while_it_came_is_refused_and_may_be_sent_again(place: Place) -> None:
    async def too_slowly() -> AsyncIterator[bytes]:
        yield b"x"
        (entry,) = await place.listed()
        place.clock.advance(601)
        assert (await place.sweep.run()).purged == 1
        # What deletion removed is put back, as by a server that was slow to notice.
        await place.objects.write(entry.key, pieces(b"late"))

    class Forgetful:
        """A place whose writes do not notice a deletion, as a bucket does with an object sent in one request."""

        bucket, read, delete = place.objects.bucket, place.objects.read, place.objects.delete

        async def write(self, key: str, chunks: AsyncIterator[bytes], *, content_type: str = "") -> int:
            return sum([len(chunk) async for chunk in chunks])

    files = Files(place.valkey, place.database, Forgetful(), place.clock)  # type: ignore[arg-type]
    with pytest.raises(FileLost) as caught:
        await files.save(too_slowly(), under="a", most_bytes=10)
    problem = problem_of(caught.value)
    assert (problem.status, problem.type, problem.headers) == (409, "file_lost", {"Retry-After": "1"})
    assert await place.rows() == await listed(place.objects) == await place.listed() == []


async def test_a_file_that_takes_more_than_a_day_is_given_up(place: Place) -> None:
    async def for_ever() -> AsyncIterator[bytes]:
        while True:
            place.clock.advance(500)
            yield b"x"

    with pytest.raises(FileLost):
        await place.files.save(for_ever(), under="a", most_bytes=10_000)
    assert await place.rows() == await listed(place.objects) == await place.listed() == []


async def test_a_deleted_file_is_gone_with_the_next_sweep(place: Place) -> None:
    file, other = await place.save(), await place.save()
    await place.files.delete(file.key, hint="replaced")
    assert await place.listed() == [PurgeEntry(bucket="files", key=file.key, expected=True, hint="replaced")]
    raw = (await place.valkey.zrange(b"files:purgatory", 0, -1))[0]
    assert raw == f'{{"bucket":"files","expected":true,"hint":"replaced","key":"{file.key}"}}'.encode()
    report = await place.sweep.run()
    assert (report.purged, report.kept, report.failed) == (1, 0, 0)
    assert await place.rows() == await listed(place.objects) == [other.key]
    with pytest.raises(Invalid, match="few words"):
        await place.files.delete(other.key, hint="x" * 201)


async def test_saving_needs_the_list(place: Place, valkey_server: object) -> None:
    """No list, no object: what cannot be announced is not stored."""
    await place.valkey.set("x", "y")
    await place.valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable, match="memory"):
            await place.save()
    finally:
        await place.valkey.config_set("maxmemory", 0)
    assert await listed(place.objects) == []


async def test_a_commit_whose_answer_was_lost_is_judged_by_the_database(place: Place) -> None:
    class Unsure(MortalDatabase):
        """Commits, or does not, and says that it does not know."""

        def __init__(self, commits: bool) -> None:
            self._database, self.insert = place.database, place.database.insert
            self.commits, self.calls = commits, 0

        def transaction(self):  # type: ignore[no-untyped-def]
            self.calls += 1
            return self._database.transaction() if self.calls > 1 else self.unsure()

        async def _inside(self) -> AsyncIterator[object]:
            async with self._database.transaction() as sql:
                yield sql
                if not self.commits:
                    raise ReplyLost("gone")
            raise ReplyLost("gone")

        def unsure(self):  # type: ignore[no-untyped-def]
            return contextlib.asynccontextmanager(self._inside)()

    for commits in (True, False):
        files = Files(place.valkey, Unsure(commits), place.objects, place.clock)  # type: ignore[arg-type]
        with pytest.raises(ReplyLost):
            await files.save(pieces(b"x"), under=f"commits-{commits}", most_bytes=10)
        assert await place.listed() == []
    assert [key.partition("/")[0] for key in await place.rows()] == ["commits-True"]
    assert await listed(place.objects) == await place.rows()


async def test_whoever_dies_while_saving_leaves_a_saved_file_or_nothing(place: Place) -> None:
    outcomes = []
    for fate in fates():
        files = Files(
            MortalValkey(place.valkey, fate), MortalDatabase(place.database, fate),  # type: ignore[arg-type]
            MortalFiles(place.objects, fate), place.clock,  # type: ignore[arg-type]
        )
        under = f"n{len(outcomes)}"
        with contextlib.suppress(Died):
            await files.save(pieces(secrets.token_bytes(20), 10), under=under, most_bytes=100)
        # Whatever is there without a row is listed, at every moment.
        unsaved = set(await listed(place.objects)) - set(await place.rows())
        assert unsaved <= {entry.key for entry in await place.listed()}
        await place.sweep_everything()
        outcomes.append(any(key.startswith(f"{under}/") for key in await place.check()))
        if not fate.dead:
            break
    assert outcomes[0] is False and outcomes[-1] is True
    assert outcomes == sorted(outcomes), "before the commit nothing is kept, after it everything"
    assert len(outcomes) >= 12


async def test_whoever_dies_while_sweeping_leaves_the_rest_to_the_next(place: Place) -> None:
    rounds = 0
    for fate in fates():
        rounds += 1
        kept, doomed = await place.save(), await place.save()
        await place.files.delete(doomed.key)
        orphan = PurgeEntry(bucket="files", key=f"orphan/{rounds}")
        await place.objects.write(orphan.key, pieces(b"x"))
        await FILES_PURGATORY.at().add(place.valkey, orphan, place.clock.now() - 1)
        sweep = Sweep(
            MortalValkey(place.valkey, fate), MortalDatabase(place.database, fate),  # type: ignore[arg-type]
            MortalFiles(place.objects, fate), place.clock,  # type: ignore[arg-type]
        )
        with contextlib.suppress(Died):
            await sweep.sweep()
        unsaved = set(await listed(place.objects)) - set(await place.rows())
        assert unsaved <= {entry.key for entry in await place.listed()}
        await place.sweep_everything()
        assert await place.check() == [kept.key]
        await place.files.delete(kept.key)
        await place.sweep_everything()
        if not fate.dead:
            break
    assert rounds > 15


async def test_a_save_and_a_purge_at_the_same_time_end_with_one_winner(place: Place) -> None:
    """The entry is due while the row is about to be made: object and row stay together whoever is first."""
    saved = lost = 0

    async def one(number: int) -> None:
        nonlocal saved, lost

        async def coming() -> AsyncIterator[bytes]:
            yield b"x"

        try:
            async with place.files.saving(coming(), under=f"n{number}", promised=Promised(10)) as (_, file):
                # Due at once, so that sweeps meet the open transaction.
                await FILES_PURGATORY.at().add(
                    place.valkey, PurgeEntry(bucket="files", key=file.key), place.clock.now() - 1
                )
                await asyncio.sleep(0)
            saved += 1
        except FileLost:
            lost += 1

    async def early(number: int) -> None:
        """Purged between the end of the upload and the transaction."""
        nonlocal saved, lost

        class Due(MortalFiles):
            async def write(self, key: str, chunks: AsyncIterator[bytes], *, content_type: str = "") -> int:
                size = await place.objects.write(key, chunks)
                await FILES_PURGATORY.at().add(place.valkey, PurgeEntry(bucket="files", key=key), 1)
                await place.sweep.sweep()
                return size

        files = Files(place.valkey, place.database, Due(place.objects, Fate(10**9)), place.clock)  # type: ignore[arg-type]
        try:
            await files.save(pieces(b"x"), under=f"e{number}", most_bytes=10)
            saved += 1
        except FileLost:
            lost += 1

    async def sweeping() -> None:
        while True:
            await place.sweep.sweep()
            await asyncio.sleep(0)

    sweepers = [asyncio.ensure_future(sweeping()) for _ in range(2)]
    await asyncio.gather(*(one(number) for number in range(20)), *(early(number) for number in range(10)))
    for sweeper in sweepers:
        sweeper.cancel()
    await asyncio.gather(*sweepers, return_exceptions=True)
    assert saved + lost == 30 and saved >= 20, "a purge that came too late for these keeps them"
    await place.sweep_everything()
    assert len(await place.check()) == saved


async def test_a_purge_waits_for_a_transaction_that_is_about_to_save(place: Place) -> None:
    async with place.files.saving(pieces(b"x"), under="a", promised=Promised(10)) as (_, file):
        sweeping = await place.sweep_takes(file.key)
        assert (await asyncio.wait({sweeping}, timeout=0.7))[1] == {sweeping}
    assert (await sweeping).kept == 1
    assert await place.check() == [file.key]


async def test_a_transaction_that_saves_waits_for_a_purge_and_sees_it(place: Place) -> None:
    async def saving() -> bool:
        async with place.database.transaction() as sql:
            values = {"uid": "u", "key": "a/b", "file_size": 1, "content_type": "", "sha256": "", "created_at": 1.0}
            await sql.execute(insert(FILES).values(values))
            return await is_forbidden(sql, "a/b")

    async with place.database.transaction() as sql:
        assert await Purge(place.database, place.objects)._forbid(sql, "a/b", 1.0)
        saver = asyncio.ensure_future(saving())
        assert (await asyncio.wait({saver}, timeout=0.7))[1] == {saver}
    assert await saver is True


async def test_every_key_is_declared(place: Place, no_undeclared_keys) -> None:  # type: ignore[no-untyped-def]
    no_undeclared_keys(Registry([STORE]))
    file = await place.save()
    await place.files.delete(file.key)
    await FILES_PURGATORY.at().add(place.valkey, PurgeEntry(bucket="elsewhere", key="x"), 1)
    await place.sweep.sweep()


@pytest.mark.usefixtures("s3_endpoint")
async def test_files_are_saved_and_purged_in_a_bucket_too(
    valkey: Valkey, moving_clock: MovableClock, s3_endpoint: str, tmp_path: Path
) -> None:
    async with (
        Database.open(f"sqlite:///{tmp_path / 'x.db'}") as database, fresh_bucket(s3_endpoint) as url,
        open_files(url) as objects,
    ):
        await database.migrate()
        place = Place(valkey, database, objects, moving_clock)
        file, doomed = await place.save(b"1"), await place.save(b"2")
        assert await whole(objects, file.key) == b"1"
        with pytest.raises(TooLarge):
            await place.save(bytes(2000))
        await place.files.delete(doomed.key)
        await place.sweep_everything()
        assert await place.check() == [file.key]


REFERRING = MetaData()
FILES.to_metadata(REFERRING)
PICTURES = Table(
    "test_pictures", REFERRING, Column("name", Text),
    Column("file", ForeignKey("s3_files.id", ondelete="RESTRICT")),
)


async def test_a_file_that_another_row_refers_to_is_not_deleted(place: Place) -> None:
    async with place.database.transaction() as sql:
        await sql.run_sync(PICTURES.create)
    async with place.files.saving(pieces(b"x"), under="a", promised=Promised(10)) as (sql, file):
        await sql.execute(insert(PICTURES).values(name="me", file=file.id))
    await place.files.delete(file.key)
    report = await place.sweep.run()
    assert (report.purged, report.failed) == (0, 1)
    assert await place.rows() == await listed(place.objects) == [file.key]
    async with place.database.transaction() as sql:
        await sql.execute(PICTURES.delete())
    place.clock.advance(61)
    assert (await place.sweep.run()).purged == 1
    assert await place.rows() == await listed(place.objects) == await place.listed() == []
