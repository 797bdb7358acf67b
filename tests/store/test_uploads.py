"""Uploads in parts: the protocol, exactly one job at the end, and what a crash leaves."""

import asyncio
import contextlib
import hashlib
import random
import secrets
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import delete, func, select, update

from keystead.edge import Forbidden, TicketExpired, Tickets, TicketTampered, problem_of
from keystead.errors import Corrupt, DeclarationError, Invalid, NotFound
from keystead.jobs import JobBook, watch
from keystead.jobs.routes import WATCH_PURPOSE as WATCHED_BY_JOBS
from keystead.store.files_kept import Files
from keystead.store.files_tables import PARTS, UPLOADS
from keystead.store.outbox import SqlOutbox
from keystead.store.tables import OUTBOX
from keystead.store.uploads import (
    DELETE_FILES,
    WATCH_PURPOSE,
    PartMismatch,
    PartMissing,
    PartTaken,
    UploadClosed,
    Uploads,
)
from keystead.store.uploads_plan import PART_BYTES, PartRange, SinglePart, StartedUpload, UploadPurpose, plan

from ..patterns.crash import Died
from .file_place import Place
from .mortal import MortalDatabase, MortalFiles, MortalValkey, fates
from .test_files import listed, pieces

PICTURE = UploadPurpose("picture", most_bytes=20 * PART_BYTES, success="test.process", failure="test.give_up")


async def process(upload_uid: str, user: str, progress_uid: str = "") -> None:
    """A job."""


async def give_up(upload_uid: str, progress_uid: str = "") -> None:
    """A job."""


class Door:
    """Uploads of one place, and the jobs that came of them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.book = JobBook()
        self.book.register("test.process", process)
        self.book.register("test.give_up", give_up)
        self.tickets = Tickets(bytes(32), place.clock)
        self.outbox = SqlOutbox(place.database, place.valkey, self.book, clock=place.clock)
        self.uploads = self.over(place.files)

    def over(self, files: Files, database: object = None) -> Uploads:
        place = self.place
        return Uploads(
            place.valkey, database or place.database, files, self.outbox, self.book, self.tickets,  # type: ignore[arg-type]
            place.clock,
        )

    async def start(self, size: int, **more: object) -> StartedUpload:
        return await self.uploads.start(PICTURE, size, success={"user": "ada"}, **more)  # type: ignore[arg-type]

    async def put(self, upload: StartedUpload, number: int, raw: bytes, **more: str) -> bool:
        return await self.uploads.put(upload.uid, number, upload.ticket, pieces(raw), **more)

    async def jobs(self) -> list[tuple[str, dict[str, object]]]:
        async with self.place.database.reading() as sql:
            raws = (await sql.scalars(select(OUTBOX.c.raw).order_by(OUTBOX.c.number))).all()
        records = [msgspec.json.decode(raw) for raw in raws]
        return [(record["name"], record["kwargs"]) for record in records]

    async def count(self, table: object) -> int:
        async with self.place.database.reading() as sql:
            return int(await sql.scalar(select(func.count()).select_from(table)) or 0)  # type: ignore[arg-type]


@pytest_asyncio.fixture
async def door(place: Place) -> AsyncIterator[Door]:
    yield Door(place)


@pytest.mark.parametrize(("size", "parts"), [
    (1, (SinglePart(1, 0, 0),)),
    (PART_BYTES, (SinglePart(1, 0, PART_BYTES - 1),)),
    (PART_BYTES + 1, (SinglePart(1, 0, PART_BYTES - 1), SinglePart(2, PART_BYTES, PART_BYTES))),
    (3 * PART_BYTES, (PartRange(1, 0, 3, PART_BYTES),)),
    (3 * PART_BYTES + 7, (PartRange(1, 0, 3, PART_BYTES), SinglePart(4, 3 * PART_BYTES, 3 * PART_BYTES + 6))),
])
def test_a_file_is_cut_into_parts_of_one_size_and_a_rest(size: int, parts: tuple[object, ...]) -> None:
    assert plan(size) == parts


async def test_parts_in_any_order_and_several_times_complete_an_upload_once(door: Door) -> None:
    raw = secrets.token_bytes(4 * PART_BYTES + 12_345)
    upload = await door.start(len(raw))
    parts = [raw[at : at + PART_BYTES] for at in range(0, len(raw), PART_BYTES)]
    done = taken = refused = 0

    async def client(seed: int) -> None:
        nonlocal done, taken, refused
        for number in random.Random(seed).sample(range(1, 6), 5):
            try:
                done += await door.put(upload, number, parts[number - 1])
                taken += 1
            except (PartTaken, UploadClosed):
                refused += 1

    await asyncio.gather(*(client(seed) for seed in range(8)))
    assert (done, taken, refused) == (1, 5, 35)
    assert await door.jobs() == [("test.process", {"user": "ada", "upload_uid": upload.uid})]
    assert b"".join([chunk async for chunk in door.uploads.stitched(upload.uid)]) == raw
    assert await listed(door.place.objects) == await door.place.rows()
    assert len(await door.place.rows()) == 5 and await door.place.listed() == []


async def test_two_last_parts_at_once_complete_the_upload(door: Door) -> None:
    """Each transaction would find the other's part missing, unless they come one after the other."""
    for _ in range(5):
        upload = await door.start(PART_BYTES + 1)
        answers = await asyncio.gather(door.put(upload, 1, bytes(PART_BYTES)), door.put(upload, 2, b"x"))
        assert sorted(answers) == [False, True]
    assert len(await door.jobs()) == 5


async def test_what_is_refused_says_why_and_leaves_nothing(door: Door) -> None:
    upload, other = await door.start(PART_BYTES + 3), await door.start(5)

    async def refusal(number: int, raw: bytes = b"abc", ticket: str = upload.ticket, uid: str = upload.uid,
                      **more: str) -> tuple[int, str]:
        with pytest.raises(Exception) as caught:
            await door.uploads.put(uid, number, ticket, pieces(raw), **more)
        problem = problem_of(caught.value)
        return problem.status, problem.type

    assert await refusal(2, ticket=other.ticket) == (403, "forbidden")
    assert await refusal(2, ticket=upload.ticket + "x") == (401, "ticket_not_valid")
    assert await refusal(3) == (404, "part_does_not_exist")
    assert await refusal(2, b"ab") == (409, "part_does_not_match")
    assert await refusal(2, b"abcd") == (409, "part_does_not_match")
    assert await refusal(2, sha256="0" * 64) == (409, "part_does_not_match")
    assert await door.place.rows() == await listed(door.place.objects) == await door.place.listed() == []
    assert not await door.put(upload, 2, b"abc", sha256=hashlib.sha256(b"abc").hexdigest())
    assert await refusal(2) == (409, "part_already_uploaded")
    assert await door.put(upload, 1, bytes(PART_BYTES))
    assert await refusal(2) == (404, "upload_aborted_or_completed")
    ticket = door.tickets.issue("file upload", "s3fu_none", lasts_seconds=10)
    assert await refusal(1, ticket=ticket, uid="s3fu_none") == (404, "upload_aborted_or_completed")
    door.place.clock.advance(3600)
    assert await refusal(1, ticket=other.ticket) == (401, "ticket_expired")
    ticket = door.tickets.issue("file upload", other.uid, lasts_seconds=10)
    assert await refusal(1, ticket=ticket, uid=other.uid) == (404, "upload_aborted_or_completed")
    assert len(await door.place.rows()) == 2


async def test_an_upload_that_cannot_end_well_is_not_begun(door: Door) -> None:
    for size in (0, -1, 20 * PART_BYTES + 1):
        with pytest.raises(Invalid, match="has from 1 to"):
            await door.start(size)
    with pytest.raises(Invalid, match=r"test\.process"):
        await door.uploads.start(PICTURE, 10)
    with pytest.raises(Invalid, match="no such job"):
        await door.uploads.start(UploadPurpose("x", 10, "test.nowhere", "test.give_up"), 10)
    with pytest.raises(Invalid, match="JSON"):
        await door.uploads.start(PICTURE, 10, success={"user": object()})
    with pytest.raises(DeclarationError):
        UploadPurpose("x", 0, "a", "b")
    assert await door.count(UPLOADS) == 0


async def test_an_upload_begins_with_the_transaction_of_its_caller_or_not(door: Door) -> None:
    with pytest.raises(ValueError, match="no"):
        async with door.place.database.transaction() as sql:
            await door.start(5, sql=sql)
            raise ValueError("no")
    assert await door.count(UPLOADS) == await door.count(PARTS) == 0
    async with door.place.database.transaction() as sql:
        upload = await door.start(5, sql=sql)
    assert await door.put(upload, 1, b"abcde")


async def test_an_upload_whose_time_is_over_fails_once(door: Door) -> None:
    uploads = [await door.start(5) for _ in range(23)]
    kept = await door.start(5)
    await door.put(kept, 1, b"abcde")
    assert await door.uploads.expire() == 0
    door.place.clock.advance(3600)
    counted = await asyncio.gather(*(door.uploads.expire() for _ in range(3)))
    while found := await door.uploads.expire():  # what another one had locked at the time
        counted.append(found)
    assert sum(counted) == 23
    failed = [kwargs["upload_uid"] for name, kwargs in await door.jobs() if name == "test.give_up"]
    assert sorted(failed) == sorted(upload.uid for upload in uploads)


async def test_a_part_cannot_come_into_an_upload_that_was_given_up_meanwhile(door: Door) -> None:
    upload = await door.start(5)

    async def slowly() -> AsyncIterator[bytes]:
        yield b"abc"
        door.place.clock.advance(3600)
        assert await door.uploads.expire() == 1
        yield b"de"

    with pytest.raises(UploadClosed):
        await door.uploads.put(upload.uid, 1, upload.ticket, slowly())
    assert await door.place.rows() == await listed(door.place.objects) == []
    assert [name for name, _ in await door.jobs()] == ["test.give_up"]


async def test_a_discarded_upload_goes_with_its_files(door: Door) -> None:
    upload = await door.start(PART_BYTES + 1)
    for number, raw in ((1, bytes(PART_BYTES)), (2, b"x")):
        await door.put(upload, number, raw)
    keys = await door.place.rows()
    await door.uploads.discard(upload.uid)
    await door.uploads.discard(upload.uid)
    (job,) = [kwargs for name, kwargs in await door.jobs() if name == DELETE_FILES]
    assert sorted(job["keys"]) == keys  # type: ignore[call-overload]
    await door.place.files.delete(*keys)
    await door.place.sweep_everything()
    assert await door.place.check() == []
    assert await door.count(UPLOADS) == await door.count(PARTS) == 0
    with pytest.raises(NotFound):
        await anext(door.uploads.stitched(upload.uid))


async def test_a_part_that_is_still_needed_is_not_deleted(door: Door) -> None:
    upload = await door.start(5)
    await door.put(upload, 1, b"abcde")
    await door.place.files.delete(*await door.place.rows())
    assert (await door.place.sweep.run()).failed == 1
    assert b"".join([chunk async for chunk in door.uploads.stitched(upload.uid)]) == b"abcde"


async def test_a_part_that_changed_on_the_disk_is_noticed(door: Door) -> None:
    upload = await door.start(5)
    await door.put(upload, 1, b"abcde")
    (key,) = await door.place.rows()
    await door.place.objects.write(key, pieces(b"abcdf"))
    with pytest.raises(Corrupt):
        await anext(door.uploads.stitched(upload.uid))


async def test_an_unfinished_upload_cannot_be_read(door: Door) -> None:
    upload = await door.start(PART_BYTES + 1)
    await door.put(upload, 2, b"x")
    with pytest.raises(NotFound, match="not all of its parts"):
        await anext(door.uploads.stitched(upload.uid))


async def test_progress_can_be_watched_from_the_start(door: Door) -> None:
    assert WATCH_PURPOSE == WATCHED_BY_JOBS
    upload = await door.start(1, progress=True)
    assert upload.progress is not None
    assert door.tickets.read(WATCH_PURPOSE, upload.progress.ticket).subject == upload.progress.uid
    batch = await anext(watch(door.place.valkey, upload.progress.uid))
    assert batch.events[0].type == "queued"
    assert set(upload.as_dict()) == {"uid", "ticket", "expires_at", "parts", "progress"}
    await door.put(upload, 1, b"x")
    ((_, kwargs),) = await door.jobs()
    assert kwargs["progress_uid"] == upload.progress.uid
    door.place.clock.advance(3601)
    assert door.tickets.read(WATCH_PURPOSE, upload.progress.ticket)
    with pytest.raises(TicketExpired):
        door.tickets.read("file upload", upload.ticket)
    assert "progress" not in (await door.start(1)).as_dict()


async def test_whoever_dies_while_a_part_comes_leaves_it_taken_or_missing(door: Door) -> None:
    place, rounds = door.place, 0
    for fate in fates():
        rounds += 1
        upload = await door.start(5)
        files = Files(
            MortalValkey(place.valkey, fate), MortalDatabase(place.database, fate),  # type: ignore[arg-type]
            MortalFiles(place.objects, fate), place.clock,  # type: ignore[arg-type]
        )
        uploads = door.over(files, MortalDatabase(place.database, fate))
        with contextlib.suppress(Died):
            await uploads.put(upload.uid, 1, upload.ticket, pieces(b"abcde", 3))
        unsaved = set(await listed(place.objects)) - set(await place.rows())
        assert unsaved <= {entry.key for entry in await place.listed()}
        # The client, which got no answer, sends it again.
        with contextlib.suppress(PartTaken, UploadClosed):
            assert await door.put(upload, 1, b"abcde")
        assert b"".join([chunk async for chunk in door.uploads.stitched(upload.uid)]) == b"abcde"
        assert [kwargs["upload_uid"] for _, kwargs in await door.jobs()] == [upload.uid]
        await place.sweep_everything()
        assert len(await place.check()) == 1
        await door.uploads.discard(upload.uid)
        async with place.database.transaction() as sql:
            await sql.execute(delete(OUTBOX))
        await place.files.delete(*await place.rows())
        await place.sweep_everything()
        if not fate.dead:
            break
    assert rounds > 12


async def test_whoever_dies_while_giving_up_leaves_it_to_the_next(door: Door) -> None:
    for fate in fates():
        upload = await door.start(5)
        door.place.clock.advance(3600)
        with contextlib.suppress(Died):
            await door.over(door.place.files, MortalDatabase(door.place.database, fate)).expire()
        await door.uploads.expire()
        failed = [kwargs["upload_uid"] for _, kwargs in await door.jobs()]
        assert failed.count(upload.uid) == 1
        if not fate.dead:
            break


async def test_tickets_of_other_things_open_no_upload(door: Door) -> None:
    upload = await door.start(5)
    ticket = door.tickets.issue("login", upload.uid, lasts_seconds=60)
    with pytest.raises(TicketTampered):
        await door.uploads.put(upload.uid, 1, ticket, pieces(b"abcde"))
    with pytest.raises(Forbidden):
        await door.uploads.put("s3fu_x", 1, upload.ticket, pieces(b"abcde"))


async def test_a_job_that_left_the_book_still_ends_the_upload(door: Door) -> None:
    """The name was checked when the upload began; an older program may complete what a newer one no longer knows."""
    upload = await door.start(5)
    async with door.place.database.transaction() as sql:
        await sql.execute(update(UPLOADS).values(success_job_name="test.gone"))
    assert await door.put(upload, 1, b"abcde")
    assert [name for name, _ in await door.jobs()] == ["test.gone"]


async def test_jobs_that_take_other_arguments_by_now_hold_up_no_upload(door: Door) -> None:
    """The arguments were checked when the upload began; a later version may have changed what the job takes."""
    done, over = await door.start(5), await door.start(5)
    async with door.place.database.transaction() as sql:
        changed = {"success_job_kwargs": '{"at":1,"queue":"q"}', "failure_job_kwargs": '{"since":"renamed"}'}
        await sql.execute(update(UPLOADS).values(changed))
    assert await door.put(done, 1, b"abcde")
    door.place.clock.advance(3600)
    assert await door.uploads.expire() == 1
    assert await door.jobs() == [("test.process", {"at": 1, "queue": "q"}), ("test.give_up", {"since": "renamed"})]
    assert over.uid


def test_a_mismatch_is_a_conflict_and_a_missing_part_is_not_found() -> None:
    assert problem_of(PartMismatch("x")).status == 409
    assert problem_of(PartMissing("x")).status == 404


