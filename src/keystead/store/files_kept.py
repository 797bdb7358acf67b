"""Saved files: an object, and the row that says it is there. README says why no crash leaves one without the other."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from sqlalchemy import insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.edge import TooLarge
from keystead.engine.failures import ErrorReply
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Conflict, GatewayError, Invalid, NotFound, Unavailable
from keystead.ids import new_uid
from keystead.store.database import Database
from keystead.store.files import DEFAULT_CONTENT_TYPE, ObjectFiles, checked_key, new_key
from keystead.store.files_tables import FILES
from keystead.store.models import PurgeEntry
from keystead.store.purgatory import FILE_PREFIX, Purge, Verdict, is_forbidden, put_on, spelled, strike_off
from keystead.telemetry import counts, logger

counts.describe("files_saved", "files that were saved")
counts.describe("files_not_saved", "files whose saving failed; what was there of them is purged")

ANNOUNCED_SECONDS: Final = 600.0  # after so long without a sign of life a file that was announced is purged
SIGN_OF_LIFE_SECONDS: Final = 60.0
# Far below the time for which a purged key stays forbidden.
MOST_SAVING_SECONDS: Final = 86_400.0
MOST_HINT_CHARACTERS: Final = 200

_log = logger("store")


class FileLost(Conflict):
    """The file was purged while it was being saved, because it took too long. Sending it again will help."""

    problem_type = "file_lost"
    retry_after_seconds = 1.0


class ContentMismatch(Conflict):
    """The bytes that came are not those that were promised."""

    problem_type = "content_does_not_match"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file whose object is there, whole."""

    id: int
    uid: str
    key: str
    file_size: int
    content_type: str
    sha256: str

    def fits(self, raw: bytes) -> bool:
        """Whether these are the bytes that were saved."""
        return len(raw) == self.file_size and sha256(raw).hexdigest() == self.sha256


@dataclass(frozen=True, slots=True)
class Promised:
    """What is known of the bytes before they come. None and empty: nothing."""

    most_bytes: int
    exact_bytes: int | None = None
    sha256: str = ""


class Files:
    """Saves, finds, reads and deletes files."""

    def __init__(self, valkey: ScriptRunner, database: Database, objects: ObjectFiles, clock: Clock) -> None:
        self._valkey = valkey
        self._database = database
        self._objects = objects
        self._clock = clock
        self._purge = Purge(database, objects)

    async def save(
        self, chunks: AsyncIterable[bytes], *, under: str, most_bytes: int, sha256: str = "",
        content_type: str = DEFAULT_CONTENT_TYPE,
    ) -> SavedFile:
        """Save a file; see ``saving`` for what is refused."""
        promised = Promised(most_bytes, sha256=sha256)
        async with self.saving(chunks, under=under, promised=promised, content_type=content_type) as (_, file):
            return file

    @asynccontextmanager
    async def saving(
        self, chunks: AsyncIterable[bytes], *, under: str, promised: Promised, content_type: str = DEFAULT_CONTENT_TYPE
    ) -> AsyncIterator[tuple[AsyncConnection, SavedFile]]:
        """Store the object, then open the transaction that makes its row, for rows that belong to it.

        The block sees the file's row; row and object stay if it ends well and the commit succeeds, otherwise both go.
        The object's key is ``under`` and a random name. ``TooLarge`` as soon as more bytes come than promised,
        ``ContentMismatch`` if they are fewer or others, ``FileLost`` if it took so long that it was purged.
        ``ReplyLost`` from the database: it may or may not be saved; what was not saved is purged.
        """
        key = new_key(under)
        entry = PurgeEntry(bucket=self._objects.bucket, key=key)
        coming = _Coming(chunks, promised, self._clock, lambda: self._announce(entry))
        await self._announce(entry)
        try:
            size = await self._objects.write(entry.key, coming.bytes(), content_type=content_type)
            await self._announce(entry)
            async with self._database.transaction() as sql:
                file = await self._insert(sql, entry.key, size, content_type, coming)
                yield sql, file
        except Exception:
            # Whatever it was: what is there of the file must go, unless the commit happened after all.
            counts.add("files_not_saved")
            await self._clean_up(entry)
            raise
        counts.add("files_saved")
        try:
            await strike_off(self._valkey, spelled(entry))
        except (ErrorReply, Unavailable) as error:
            _log.info("a saved file stays listed until the next sweep", key=entry.key, error=str(error))

    async def find(self, uid: str) -> SavedFile:
        """The file of this uid, or ``NotFound``."""
        async with self._database.reading() as sql:
            row = (await sql.execute(select(*_COLUMNS).where(FILES.c.uid == uid))).one_or_none()
        if row is None:
            raise NotFound(f"there is no file {uid}")
        return SavedFile(*row)

    async def read(self, file: SavedFile, *, start_byte: int = 0, end_byte: int | None = None) -> AsyncIterator[bytes]:
        """Its bytes, or those from ``start_byte`` to ``end_byte``, both included. ``NotFound`` if it was deleted."""
        async for chunk in self._objects.read(file.key, start_byte=start_byte, end_byte=end_byte):
            yield chunk

    async def delete(self, *keys: str, hint: str = "") -> None:
        """Let the next sweep delete these files, row and object. It waits for as long as another row refers to one.

        ``hint`` says why, for whoever looks at the list. If the deletion must follow from a change in SQL, write the
        job ``DELETE_FILES`` into the outbox in that transaction instead.
        """
        if len(hint) > MOST_HINT_CHARACTERS:
            raise Invalid(f"a hint is a few words, at most {MOST_HINT_CHARACTERS} characters")
        now, here = self._clock.now(), self._objects.bucket
        for entry in [PurgeEntry(bucket=here, key=checked_key(key), expected=True, hint=hint) for key in keys]:
            await put_on(self._valkey, entry, now)

    async def _announce(self, entry: PurgeEntry) -> None:
        try:
            await put_on(self._valkey, entry, self._clock.now() + ANNOUNCED_SECONDS)
        except ErrorReply as error:
            raise Unavailable("files cannot be announced: the server refuses to write; is its memory full?") from error

    async def _insert(
        self, sql: AsyncConnection, key: str, size: int, content_type: str, coming: "_Coming"
    ) -> SavedFile:
        uid, digest = new_uid(FILE_PREFIX), coming.sha256
        values = {"uid": uid, "key": key, "file_size": size, "content_type": content_type, "sha256": digest,
                  "created_at": self._clock.now()}
        number = await sql.scalar(insert(FILES).values(values).returning(FILES.c.id))
        # Only now: a purge of this key has either ended, and is seen, or waits for our commit.
        if await is_forbidden(sql, key):
            raise FileLost("the file took too long to come and was given up; send it again")
        coming.check_time()
        return SavedFile(int(number or 0), uid, key, size, content_type, digest)

    async def _clean_up(self, entry: PurgeEntry) -> None:
        """Do at once what the sweep would do later; if that fails too, the sweep does it."""
        try:
            verdict = await self._purge.settle(entry, now=self._clock.now())
            await strike_off(self._valkey, spelled(entry))
        except (ErrorReply, GatewayError, SQLAlchemyError, Unavailable) as error:
            _log.info("a file that was not saved is left to the sweep", key=entry.key, error=type(error).__name__)
        else:
            if verdict is Verdict.KEPT:
                _log.warning("a file was saved although the database did not say so", key=entry.key)


_COLUMNS = (FILES.c.id, FILES.c.uid, FILES.c.key, FILES.c.file_size, FILES.c.content_type, FILES.c.sha256)


class _Coming:
    """Bytes on their way: counted, hashed, bounded; tells that it lives while they come."""

    def __init__(
        self, chunks: AsyncIterable[bytes], promised: Promised, clock: Clock, tell: Callable[[], Awaitable[None]]
    ) -> None:
        self._chunks = chunks
        self._promised = promised
        self._clock = clock
        self._tell = tell
        self._started_at = clock.now()
        self._hash = sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def check_time(self) -> None:
        if self._clock.now() - self._started_at > MOST_SAVING_SECONDS:
            raise FileLost("the file took more than a day to come and was given up; send it again")

    async def bytes(self) -> AsyncIterator[bytes]:
        size, told_at = 0, self._started_at
        most = self._promised.most_bytes if self._promised.exact_bytes is None else self._promised.exact_bytes
        async for chunk in self._chunks:
            size += len(chunk)
            if size > most:
                raise TooLarge(f"more than {most} bytes came") if self._promised.exact_bytes is None else \
                    ContentMismatch(f"more bytes came than the {most} that were promised")
            self._hash.update(chunk)
            if self._clock.now() - told_at >= SIGN_OF_LIFE_SECONDS:
                self.check_time()
                await self._tell()
                told_at = self._clock.now()
            yield chunk
        if self._promised.exact_bytes is not None and size != self._promised.exact_bytes:
            raise ContentMismatch(f"{size} bytes came instead of the {self._promised.exact_bytes} that were promised")
        if self._promised.sha256 and self._promised.sha256.lower() != self.sha256:
            raise ContentMismatch("the bytes that came have another SHA-256 than the one that was promised")
