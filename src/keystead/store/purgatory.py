"""The list of objects that may have to go, and the one step that decides whether one of them does.

Valkey's list says only when to look. Whether an object is kept or purged is decided in SQL, where one transaction wins:
the one that makes a row of the key, or the one that forbids the key for ever.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Conflict, Invalid
from keystead.ids import new_uid
from keystead.keys import Argument, Executor
from keystead.store.database import Database
from keystead.store.files import ObjectFiles, checked_key
from keystead.store.files_tables import FILES, PURGES
from keystead.store.keys import FILES_PURGATORY, FILES_PURGE_FAILURES
from keystead.store.models import PurgeEntry

TAKE = Script("keystead.store", "scripts/purgatory_take.lua")
FAIL = Script("keystead.store", "scripts/purgatory_fail.lua")
FINISH = Script("keystead.store", "scripts/purgatory_finish.lua")

VISIBLE_AGAIN_SECONDS: Final = 300.0
FIRST_BACK_OFF_SECONDS: Final = 60
LONGEST_BACK_OFF_SECONDS: Final = 86_400
FILE_PREFIX: Final = "s3f"


class Verdict(Enum):
    """What became of an entry."""

    PURGED = "purged"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class PutOff:
    """How often an entry failed, and for how long it was put off. ``failures`` is 0 if it is not listed any more."""

    failures: int
    seconds: int


def spelled(entry: PurgeEntry) -> bytes:
    """The entry as it stands in the list."""
    return FILES_PURGATORY.codec.encode(entry)


def put_on(on: Executor, entry: PurgeEntry, due_at: float) -> Awaitable[int]:
    """List the object, or move the time from which it is purged. May be repeated."""
    name = FILES_PURGATORY.at().name(on.layout)
    return on.run(("ZADD", name, due_at, spelled(entry)), int, repeat=True)


def put_on_new(on: Executor, entries: Sequence[PurgeEntry], due_at: float) -> Awaitable[int]:
    """List objects that are not listed yet; says how many that were. May be repeated."""
    pairs: list[Argument] = []
    for entry in entries:
        pairs += (due_at, spelled(entry))
    return on.run(("ZADD", FILES_PURGATORY.at().name(on.layout), "NX", *pairs), int, repeat=True)


def take_due(on: ScriptRunner, *, now: float, most: int) -> Awaitable[list[bytes]]:
    """Up to ``most`` entries that are due, as they stand in the list; nobody else gets them for five minutes."""
    return TAKE(on, keys=[FILES_PURGATORY.at()], args=[now, now + VISIBLE_AGAIN_SECONDS, most], decode=list)


def put_off(on: ScriptRunner, raw_entry: bytes, *, now: float) -> Awaitable[PutOff]:
    """Count a failure; the entry is due again after a minute, then two, then four, up to a day."""
    return FAIL(
        on, keys=[FILES_PURGATORY.at(), FILES_PURGE_FAILURES.at()],
        args=[raw_entry, now, FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS], decode=lambda found: PutOff(*found),
    )


def strike_off(on: ScriptRunner, raw_entry: bytes) -> Awaitable[bool]:
    """Take the entry off the list; says whether it was on it. May be repeated."""
    return FINISH(on, keys=[FILES_PURGATORY.at(), FILES_PURGE_FAILURES.at()], args=[raw_entry], decode=bool)


class Purge:
    """Decides on one entry and carries it out."""

    def __init__(self, database: Database, objects: ObjectFiles) -> None:
        self._database = database
        self._objects = objects

    async def settle(self, entry: PurgeEntry, *, now: float) -> Verdict:
        """Keep the object if it has a row and nobody wants it gone; otherwise forbid its key, then delete it.

        May be repeated and may be cut off anywhere: until it returns, the entry must stay listed. Raises SQLAlchemy's
        ``IntegrityError`` for an expected deletion while another row refers to the file.
        """
        here = self._objects.bucket
        if entry.bucket != here:
            raise Invalid(f"files of {entry.bucket!r} are not ours to delete; ours lie in {here!r}")
        checked_key(entry.key)
        async with self._database.transaction() as sql:
            if entry.expected:
                await sql.execute(delete(FILES).where(FILES.c.key == entry.key))
            if not await self._forbid(sql, entry.key, now):
                if entry.expected:
                    raise Conflict("the file is being saved at this moment; it can be deleted afterwards")
                return Verdict.KEPT
        await self._objects.delete(entry.key)
        return Verdict.PURGED

    async def _forbid(self, sql: AsyncConnection, key: str, now: float) -> bool:
        """Unless there is a row of the key, make sure that none will ever be; says whether it did.

        A row of the same key is inserted and deleted again, so that its unique index makes us wait for a transaction
        that is about to save the file, or it for us. Reading alone would let both sides miss each other.
        """
        stand_in = new_uid(FILE_PREFIX)
        values = {"uid": stand_in, "key": key, "file_size": 0, "content_type": "", "sha256": "", "created_at": now}
        inserting = self._database.insert(FILES).values(values).on_conflict_do_nothing(index_elements=["key"])
        if await sql.scalar(inserting.returning(FILES.c.id)) is None:
            return False
        forbidding = self._database.insert(PURGES).values(key=key, purged_at=now)
        await sql.execute(forbidding.on_conflict_do_update(index_elements=["key"], set_={"purged_at": now}))
        await sql.execute(delete(FILES).where(FILES.c.uid == stand_in))
        return True


async def is_forbidden(sql: AsyncConnection, key: str) -> bool:
    """Whether the key was purged. To be asked after its row was inserted, in the same transaction."""
    return await sql.scalar(select(PURGES.c.key).where(PURGES.c.key == key)) is not None
