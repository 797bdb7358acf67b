"""One turn of the outbox: rows are read, brought to Valkey, and deleted."""

import asyncio
import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from sqlalchemy import delete, func, select, update

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs import JobRecord
from keystead.jobs.keys import OPEN_SECONDS, QUEUES, Queue
from keystead.keys import FlagRef, KeyReference, Layout
from keystead.store.database import Database
from keystead.store.keys import SENT_AND_GONE_SECONDS, SENT_SECONDS, sent_mark
from keystead.store.query import Query
from keystead.store.tables import OUTBOX
from keystead.telemetry import counts, logger

QUEUE = Script("keystead.store", "scripts/outbox_queue.lua")
JOB: Final = "job"
ANNOUNCEMENT: Final = "announcement"
# Of one turn: what is held in memory, and what one script carries.
MOST_BYTES: Final = 8 * 1024 * 1024
# A relay that was held up so long after reading begins anew: rows may be gone, and soon their marks too.
STALE_SECONDS: Final = SENT_AND_GONE_SECONDS / 4
_FIRST: Final = Query(select(OUTBOX.c.number).where(OUTBOX.c.failed_at.is_(None)).limit(1))

_log = logger("store")
_decode = msgspec.json.Decoder(JobRecord).decode

counts.describe("outbox_delivered", "rows of the SQL outbox that were brought to Valkey")
counts.describe("outbox_failed", "rows of the SQL outbox that cannot be delivered")


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row as it was read."""

    number: int
    uid: str
    kind: str
    queue: str
    category: int | None
    due_at: float
    channel: bytes
    shard_channel: bytes
    raw: bytes


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A job that is ready to be queued: where it goes, and what is written there."""

    row: OutboxRow
    mark: FlagRef
    keys: tuple[KeyReference, ...]
    arguments: tuple[bytes | str, ...]


class Relay:
    """Brings rows to Valkey. Any number may do so at once; ``turn`` may be cut off anywhere and called again."""

    def __init__(self, database: Database, valkey: Valkey, clock: Clock) -> None:
        self._database = database
        self._valkey = valkey
        self._clock = clock
        self._alone = asyncio.Lock()
        self._listed: set[str] = {""}
        # Delivered, or found to be undeliverable, and not yet settled in the table.
        self._sent: dict[int, FlagRef | None] = {}
        self._failed: dict[int, str] = {}

    async def turn(self, most: int) -> int:
        """Deliver up to ``most`` of the oldest rows, then delete them; says how many were dealt with.

        ``Unavailable`` when the database or Valkey is out of reach: what could be delivered is, and the rest stays.
        """
        async with self._alone:
            await self._settle()  # what an earlier turn could not
            read_at = time.monotonic()
            rows = await self._oldest(most)
            if not rows:
                return 0
            parcels = self._parcels(rows)
            announcements = [row for row in rows if row.kind == ANNOUNCEMENT]
            if time.monotonic() - read_at > STALE_SECONDS:
                return 0
            ended = await asyncio.gather(
                *(self._queue(queue, many) for queue, many in parcels.items()), self._publish(announcements),
                return_exceptions=True,
            )
            dealt_with = len(self._sent) + len(self._failed)
            await self._settle()
            for error in ended:
                if isinstance(error, BaseException):
                    raise error
            return dealt_with

    async def _oldest(self, most: int) -> list[OutboxRow]:
        """The oldest rows, as many as may be held in memory, and one in any case."""
        if not await self._database.rows(_FIRST):  # nearly always, for whom nobody writes
            return []
        column = OUTBOX.c
        waiting = select(column.number, func.length(column.raw)).where(column.failed_at.is_(None))
        fields = [column[name] for name in OutboxRow.__slots__]
        async with self._database.reading() as sql:
            numbers: list[int] = []
            weight = 0
            for number, length in (await sql.execute(waiting.order_by(column.number).limit(most))).all():
                weight += length
                if numbers and weight > MOST_BYTES:
                    break
                numbers.append(number)
            if not numbers:
                return []
            found = await sql.execute(select(*fields).where(column.number.in_(numbers)).order_by(column.number))
            return [OutboxRow(*row) for row in found]

    # -- jobs -------------------------------------------------------------------------------------------------------

    def _parcels(self, rows: Sequence[OutboxRow]) -> Mapping[str, list[_Parcel]]:
        """Jobs by queue, in their order; rows that nobody can deliver are put down as failed."""
        found: dict[str, list[_Parcel]] = {}
        for row in rows:
            if row.kind == ANNOUNCEMENT:
                continue
            try:
                parcel = _parcel(row)
            except (msgspec.MsgspecError, UnicodeDecodeError, DeclarationError, ValueError) as error:
                self._failed[row.number] = f"{type(error).__name__}: {error}"
            else:
                found.setdefault(row.queue, []).append(parcel)
        return found

    async def _queue(self, name: str, parcels: Sequence[_Parcel]) -> None:
        if name not in self._listed:
            with contextlib.suppress(ErrorReply):  # the list only lets the queue be seen; its jobs may go all the same
                await QUEUES.at().add(self._valkey, name)
                self._listed.add(name)
        keys = [key for parcel in parcels for key in parcel.keys]
        arguments = [argument for parcel in parcels for argument in parcel.arguments]
        try:
            await QUEUE(
                self._valkey, keys=[Queue(name).delayed, *keys],
                args=(SENT_SECONDS * 1000, OPEN_SECONDS * 1000, *arguments),
            )
        except ErrorReply as error:
            if not str(error).startswith("WRONGTYPE"):  # out of memory, no permission: may pass
                raise Unavailable(f"the queue {name or 'hot'} takes no jobs of the outbox: {error}") from error
            if len(parcels) == 1:
                reason = f"a key of the queue {name or 'hot'} holds something else: {error}"
                self._failed[parcels[0].row.number] = reason
            else:  # those before the wrong key were queued, and have marks; each alone tells which one it is
                for parcel in parcels:
                    await self._queue(name, [parcel])
        else:
            self._sent.update((parcel.row.number, parcel.mark) for parcel in parcels)

    # -- announcements ----------------------------------------------------------------------------------------------

    async def _publish(self, rows: Sequence[OutboxRow]) -> None:
        tagged = self._valkey.layout is not Layout.PLAIN
        verb = "SPUBLISH" if tagged else "PUBLISH"
        for row in rows:  # one after the other: who listens hears them in their order
            channel = row.shard_channel if tagged else row.channel
            try:
                await self._valkey.run((verb, channel, row.raw), int)
            except ErrorReply as error:
                if "permission" not in str(error):
                    raise Unavailable(f"an announcement of the outbox was not published: {error}") from error
                # That does not pass by itself. Kept waiting, such rows would fill each turn, and no job would leave.
                self._failed[row.number] = f"the server does not let us publish there: {error}"
            else:
                self._sent[row.number] = None

    # -- afterwards -------------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Delete rows that were delivered and put down why others were not; until that is done they are remembered."""
        sent, failed = self._sent, self._failed
        if not sent and not failed:
            return
        async with self._database.transaction() as sql:
            if sent:
                await sql.execute(delete(OUTBOX).where(OUTBOX.c.number.in_(list(sent))))
            for number, reason in failed.items():
                row = update(OUTBOX).where(OUTBOX.c.number == number, OUTBOX.c.failed_at.is_(None))
                await sql.execute(row.values(failed_at=self._clock.now(), reason=reason[:500]))
        self._sent, self._failed = {}, {}
        counts.add("outbox_delivered", len(sent))
        for number, reason in failed.items():
            counts.add("outbox_failed")
            _log.error("a row of the outbox cannot be delivered", number=number, reason=reason[:500])
        await self._shorten([mark for mark in sent.values() if mark is not None])

    async def _shorten(self, marks: Sequence[FlagRef]) -> None:
        """The rows are gone, so their marks need not be kept for long. If this fails, they are, and do no harm."""
        layout, milliseconds = self._valkey.layout, SENT_AND_GONE_SECONDS * 1000
        await asyncio.gather(
            *(self._valkey.run(("PEXPIRE", mark.name(layout), milliseconds), bool, repeat=True) for mark in marks),
            return_exceptions=True,
        )


def _parcel(row: OutboxRow) -> _Parcel:
    """What is to be written for a job; an error for one that no worker could read or no queue can hold."""
    if row.kind != JOB:
        raise ValueError(f"{row.kind[:40]!r} is neither a job nor an announcement")
    record = _decode(row.raw)
    if record.uid != row.uid:
        raise ValueError("the record has another uid than its row")
    if not math.isfinite(row.due_at):
        raise ValueError("it is due at no time")
    queue = Queue(row.queue)
    target = queue.work.queue if row.category is None else queue.category(row.category)
    mark, state = sent_mark(queue.name, row.uid), queue.job(row.uid)
    for place in (mark, target, state):
        place.name(Layout.TAGGED)  # a name that cannot stand in a key shows now, and not among the others
    kept = record.options is not None and record.options.keep_seconds > 0
    name = record.name if kept else ""
    return _Parcel(row, mark, (mark, target, state), (row.raw, repr(row.due_at), name, repr(record.queued_at)))
