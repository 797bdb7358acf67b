"""Uploads in parts: a client sends a file piece by piece, in any order, and one job is queued when all have come.

``docs/files.md`` shows the whole way from the first request to the finished file.
"""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import nullcontext
from typing import Any, Final

import msgspec
from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.edge import Forbidden, Tickets
from keystead.engine import Valkey
from keystead.errors import Conflict, Corrupt, NotFound
from keystead.ids import new_uid
from keystead.jobs import JobBook, JobRef, Progress
from keystead.store.database import Database
from keystead.store.files_kept import ContentMismatch, Files, Promised, SavedFile
from keystead.store.files_tables import FILES, PARTS, UPLOADS
from keystead.store.outbox import SqlOutbox
from keystead.store.uploads_plan import (
    PART_BYTES,
    ProgressTicket,
    StartedUpload,
    UploadPurpose,
    check_job,
    part_rows,
    plan,
)
from keystead.telemetry import counts, logger

counts.describe("file_uploads_completed", "uploads of which every part has come, by purpose")
counts.describe("file_uploads_expired", "uploads that were given up because their time was over, by purpose")

TICKET_PURPOSE: Final = "file upload"
WATCH_PURPOSE: Final = "job progress"  # the one that the door of the jobs asks for
WATCH_SECONDS: Final = 1800
DELETE_FILES: Final = "keystead.store.delete_files"  # the job; see jobs.py
STITCHED_AT_ONCE: Final = 10
DELETED_AT_ONCE: Final = 100
EXPIRED_AT_ONCE: Final = 10
EXPIRING_SECONDS: Final = 10.0
UPLOAD_PREFIX: Final = "s3fu"

UploadRow = Row[*tuple[Any, ...]]

_log = logger("store")
_PART_COLUMNS = (FILES.c.id, FILES.c.uid, FILES.c.key, FILES.c.file_size, FILES.c.content_type, FILES.c.sha256)


class UploadClosed(NotFound):
    """The upload was completed, given up, or never begun: it takes no parts."""

    problem_type = "upload_aborted_or_completed"


class PartMissing(NotFound):
    """The upload has no part of this number."""

    problem_type = "part_does_not_exist"


class PartTaken(Conflict):
    """The part has come already; what was sent now was thrown away."""

    problem_type = "part_already_uploaded"


class PartMismatch(Conflict):
    """The part has another length or checksum than it must have."""

    problem_type = "part_does_not_match"


class Uploads:
    """Begins uploads, takes their parts, gives up those whose time is over.

    Jobs leave through the outbox, in the transaction that is their reason: each is queued exactly once. A success or
    failure job gets the arguments it was declared with, ``upload_uid``, and ``progress_uid`` if progress was wanted. It
    reads the bytes with ``stitched`` and ends with ``discard``; it may run twice if its worker dies.
    """

    def __init__(
        self, valkey: Valkey, database: Database, files: Files, outbox: SqlOutbox, book: JobBook, tickets: Tickets,
        clock: Clock,
    ) -> None:
        self._valkey = valkey
        self._database = database
        self.files = files
        self._outbox = outbox
        self._book = book
        self._tickets = tickets
        self._clock = clock

    async def start(
        self, purpose: UploadPurpose, file_size: int, *, success: Mapping[str, Any] | None = None,
        failure: Mapping[str, Any] | None = None, progress: bool = False, sql: AsyncConnection | None = None,
    ) -> StartedUpload:
        """Begin an upload of ``file_size`` bytes. ``success`` and ``failure`` are arguments of the purpose's jobs.

        ``sql``: a transaction of the caller, with which it begins or not. ``Invalid`` for a size that the purpose does
        not allow, or a job that is not in the book or does not take its arguments: nothing is begun then.
        """
        purpose.check_size(file_size)
        uid, now = new_uid(UPLOAD_PREFIX), self._clock.now()
        progress_uid = new_uid("job") if progress else None
        added = {"upload_uid": uid, **({"progress_uid": progress_uid} if progress_uid else {})}
        jobs = {
            "success_job_name": purpose.success,
            "success_job_kwargs": check_job(self._book, purpose.success, {**(success or {}), **added}),
            "failure_job_name": purpose.failure,
            "failure_job_kwargs": check_job(self._book, purpose.failure, {**(failure or {}), **added}),
        }
        if progress_uid is not None:
            # Before the rows: a watcher who comes at once finds it, and one that nobody needs goes by itself.
            await Progress(progress_uid, self._clock).queued(self._valkey, "waiting for the parts of the file")
        async with self._database.transaction() if sql is None else nullcontext(sql) as sql:
            upload_id = await sql.scalar(UPLOADS.insert().returning(UPLOADS.c.id).values(
                uid=uid, purpose=purpose.name, file_size=file_size, job_progress_uid=progress_uid, created_at=now,
                expires_at=now + purpose.lasts_seconds, **jobs,
            ))
            await self._database.insert_many(sql, PARTS, part_rows(int(upload_id or 0), file_size))
        return StartedUpload(
            uid=uid, ticket=self._tickets.issue(TICKET_PURPOSE, uid, lasts_seconds=purpose.lasts_seconds),
            expires_at=now + purpose.lasts_seconds, parts=plan(file_size),
            progress=None if progress_uid is None else ProgressTicket(progress_uid, self._tickets.issue(
                WATCH_PURPOSE, progress_uid, lasts_seconds=purpose.lasts_seconds + WATCH_SECONDS
            )),
        )

    async def put(
        self, uid: str, number: int, ticket: str, chunks: AsyncIterable[bytes], *, sha256: str = ""
    ) -> bool:
        """Take one part; says whether it was the last that was missing.

        ``TicketRefused`` for a ticket that does not count, ``Forbidden`` for that of another upload, then
        ``UploadClosed``, ``PartMissing``, ``PartTaken``, ``PartMismatch``; and what ``Files.saving`` raises. A part
        that was refused leaves nothing behind.
        """
        if self._tickets.read(TICKET_PURPOSE, ticket).subject != uid:
            raise Forbidden("this ticket is for another upload")
        part_bytes = await self._wanted_bytes(uid, number)
        promised = Promised(PART_BYTES, exact_bytes=part_bytes, sha256=sha256)
        under = f"s3_files/uploads/{uid}/{number}"
        try:
            async with self.files.saving(chunks, under=under, promised=promised) as (sql, file):
                upload = await self._attach(sql, uid, number, file)
        except ContentMismatch as error:
            raise PartMismatch(str(error)) from None
        if upload is not None:
            counts.add("file_uploads_completed", purpose=upload.purpose)
        return upload is not None

    async def expire(self) -> int:
        """Give up uploads whose time is over and queue their failure jobs, each once; says how many.

        Ten at a time, for ten seconds at most. Two at once share the work.
        """
        ends_at, count = time.monotonic() + EXPIRING_SECONDS, 0
        while time.monotonic() < ends_at:
            found = await self._expire_some()
            count += found
            if found < EXPIRED_AT_ONCE:
                break
        return count

    async def stitched(self, uid: str) -> AsyncIterator[bytes]:
        """The whole file, part after part in order; ten are fetched at once, so some ten MiB are held.

        ``NotFound`` if there is no such upload or a part is missing; ``Corrupt`` if a part is not what was sent.
        """
        joined = PARTS.join(UPLOADS).outerjoin(FILES, FILES.c.id == PARTS.c.s3_file_id)
        wanted = select(*_PART_COLUMNS).select_from(joined).where(UPLOADS.c.uid == uid).order_by(PARTS.c.part_number)
        async with self._database.reading() as sql:
            parts = (await sql.execute(wanted)).all()
        if not parts or any(part.id is None for part in parts):
            raise NotFound(f"upload {uid} is not there, or not all of its parts have come")
        for first in range(0, len(parts), STITCHED_AT_ONCE):
            for raw in await self._fetched([SavedFile(*part) for part in parts[first : first + STITCHED_AT_ONCE]]):
                yield raw

    async def discard(self, uid: str) -> None:
        """Forget the upload, and let the files of its parts be deleted. Does nothing if there is no such upload."""
        async with self._database.transaction() as sql:
            upload_id = await sql.scalar(select(UPLOADS.c.id).where(UPLOADS.c.uid == uid).with_for_update())
            if upload_id is None:
                return
            joined = PARTS.join(FILES, FILES.c.id == PARTS.c.s3_file_id)
            keys = (await sql.scalars(
                select(FILES.c.key).select_from(joined).where(PARTS.c.upload_id == upload_id)
            )).all()
            await sql.execute(delete(PARTS).where(PARTS.c.upload_id == upload_id))
            await sql.execute(delete(UPLOADS).where(UPLOADS.c.id == upload_id))
            for first in range(0, len(keys), DELETED_AT_ONCE):
                some = list(keys[first : first + DELETED_AT_ONCE])
                await self._outbox.enqueue(sql, DELETE_FILES, keys=some, hint=f"parts of {uid}")

    async def _wanted_bytes(self, uid: str, number: int) -> int:
        """The length that the part must have. Refuses early what the transaction would refuse at the end."""
        columns = (UPLOADS.c.expires_at, UPLOADS.c.completed_at, UPLOADS.c.failed_at)
        wanted = select(PARTS.c.start_byte, PARTS.c.end_byte, PARTS.c.s3_file_id).select_from(PARTS.join(UPLOADS))
        async with self._database.reading() as sql:
            upload = (await sql.execute(select(*columns).where(UPLOADS.c.uid == uid))).one_or_none()
            part = (await sql.execute(
                wanted.where(UPLOADS.c.uid == uid, PARTS.c.part_number == number)
            )).one_or_none()
        _check_open(upload)
        if upload is not None and upload.expires_at <= self._clock.now():
            raise UploadClosed("the time for this upload is over; begin another one")
        if part is None:
            raise PartMissing(f"this upload has no part {number}")
        if part.s3_file_id is not None:
            raise PartTaken(f"part {number} has come already")
        return int(part.end_byte - part.start_byte + 1)

    async def _attach(self, sql: AsyncConnection, uid: str, number: int, file: SavedFile) -> UploadRow | None:
        """Make the file the part's; if none is missing now, complete the upload and queue its job, and return it."""
        # The row is locked: two last parts at once would otherwise both find the other one missing.
        upload = (await sql.execute(select(UPLOADS).where(UPLOADS.c.uid == uid).with_for_update())).one_or_none()
        _check_open(upload)
        assert upload is not None
        ours = (PARTS.c.upload_id == upload.id) & (PARTS.c.part_number == number)
        attached = await sql.execute(update(PARTS).where(ours, PARTS.c.s3_file_id.is_(None)).values(s3_file_id=file.id))
        if not attached.rowcount:
            raise PartTaken(f"part {number} has come already")
        missing = select(PARTS.c.id).where(PARTS.c.upload_id == upload.id, PARTS.c.s3_file_id.is_(None)).limit(1)
        if await sql.scalar(missing) is not None:
            return None
        await sql.execute(update(UPLOADS).where(UPLOADS.c.id == upload.id).values(completed_at=self._clock.now()))
        success = JobRef(upload.success_job_name, msgspec.json.decode(upload.success_job_kwargs))
        await self._outbox.enqueue_ref(sql, success)
        return upload

    async def _expire_some(self) -> int:
        now = self._clock.now()
        still_open = UPLOADS.c.completed_at.is_(None) & UPLOADS.c.failed_at.is_(None)
        over = select(UPLOADS).where(still_open, UPLOADS.c.expires_at <= now).order_by(UPLOADS.c.uid)
        async with self._database.transaction() as sql:
            found = (await sql.execute(over.limit(EXPIRED_AT_ONCE).with_for_update(skip_locked=True))).all()
            for upload in found:
                await sql.execute(update(UPLOADS).where(UPLOADS.c.id == upload.id).values(failed_at=now))
                failure = JobRef(upload.failure_job_name, msgspec.json.decode(upload.failure_job_kwargs))
                await self._outbox.enqueue_ref(sql, failure)
        for upload in found:
            counts.add("file_uploads_expired", purpose=upload.purpose)
            _log.info("an upload was given up", upload=upload.uid, purpose=upload.purpose)
        return len(found)

    async def _fetched(self, parts: list[SavedFile]) -> list[bytes]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._part(part)) for part in parts]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _part(self, file: SavedFile) -> bytes:
        raw = b"".join([chunk async for chunk in self.files.read(file)])
        if not file.fits(raw):
            raise Corrupt("a part of an upload is not what was sent", key=file.key)
        return raw


def _check_open(upload: UploadRow | None) -> None:
    if upload is None or upload.completed_at is not None or upload.failed_at is not None:
        raise UploadClosed("this upload was completed or given up, or never begun")
