"""The SQL outbox: a job or an announcement that leaves if, and only if, its transaction is committed.

``docs/store.md`` says what it promises and what it cannot.
"""

import asyncio
import contextlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound, Unavailable
from keystead.jobs import LOW_RESOURCE_COST, Job, JobBook, JobRef, encode_record
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobOptions
from keystead.jobs.records import new_uid
from keystead.keys import Layout
from keystead.keys.references_streams import ChannelRef
from keystead.store.database import Database
from keystead.store.outbox_relay import ANNOUNCEMENT, JOB, MOST_BYTES, Relay
from keystead.store.tables import OUTBOX
from keystead.telemetry import logger

T = TypeVar("T")

MOST_ROWS: Final = 5000
POLL_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 10.0

_log = logger("store")


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    """What lies in the outbox. ``oldest_at``: when the oldest row that still waits was written."""

    waiting: int
    failed: int
    oldest_at: float | None


@dataclass(frozen=True, slots=True)
class OutboxFailure:
    """A row that cannot be delivered, and why."""

    number: int
    uid: str
    kind: str
    queue: str
    written_at: float
    failed_at: float
    reason: str


class SqlOutbox:
    """Rows written in the caller's transaction, relayed to Valkey after its commit.

    A job is queued once however often its row is relayed; an announcement is published at least once. ``run`` must
    run somewhere, in this process or another; any number may. ``book`` is only needed to enqueue by name with the
    arguments checked.
    """

    def __init__(
        self, database: Database, valkey: Valkey, book: JobBook | None = None, *, queue: str = "",
        clock: Clock | None = None,
    ) -> None:
        """``queue`` is where jobs go that are not told another one."""
        self._database, self._queue = database, queue
        self._book = JobBook() if book is None else book
        self._clock: Clock = clock or SystemClock()
        self._relay = Relay(database, valkey, self._clock)
        self._wake = asyncio.Event()

    async def enqueue(
        self, sql: AsyncConnection, work: Job[..., Any] | str, /, *, queue: str | None = None, at: float = 0.0,
        **kwargs: Any,
    ) -> str:
        """Write a job into the transaction of ``sql`` and return its uid. It is queued if the transaction commits.

        ``queue``: a named queue. ``at``: not before this unix time. Arguments are checked here, as by ``Jobs.enqueue``.
        """
        job = work if isinstance(work, Job) else self._book.get(work)
        if job is not None:
            job.check(kwargs)
        name = job.name if job is not None else str(work)
        return await self._enqueue(sql, name, job, kwargs, self._queue if queue is None else queue, at)

    async def enqueue_ref(self, sql: AsyncConnection, ref: JobRef) -> str:
        """``enqueue`` for a job that was put down earlier and checked then; its arguments may have any name.

        If it takes other ones by now, it is queued all the same and fails at its worker, where that is seen. Here it
        would hold up the change that it follows, for ever.
        """
        return await self._enqueue(sql, ref.name, self._book.get(ref.name), ref.kwargs, self._queue, 0.0)

    async def _enqueue(
        self, sql: AsyncConnection, name: str, job: Job[..., Any] | None, kwargs: dict[str, Any], queue: str, at: float
    ) -> str:
        if not math.isfinite(at):
            raise Invalid(f"job {name}: it runs at some unix time, or at once with 0; got {at}")
        place, uid, now = Queue(queue), new_uid(), self._clock.now()
        place.delayed.name(Layout.TAGGED)  # a name that cannot be a queue's fails here, in front of whoever wrote it
        category = None if job is None or job.category == LOW_RESOURCE_COST else job.category.id
        raw = encode_record(name, kwargs, now, uid=uid, options=_options(job, uid))
        await self._write(
            sql, uid=uid, kind=JOB, queue=place.name, category=category, due_at=float(at), raw=raw, now=now
        )
        return uid

    async def announce(self, sql: AsyncConnection, channel: ChannelRef[T], message: T) -> None:
        """Write a message into the transaction of ``sql``. It is published, at least once, if the transaction commits.

        Those who do not listen at that moment do not hear it, as with any message on a channel. ``Invalid`` for one
        that is larger than a turn of the relay may carry.
        """
        name, raw = channel.name(Layout.PLAIN), channel.codec.encode(message)
        if len(raw) > MOST_BYTES:
            raise Invalid(f"an announcement has at most {MOST_BYTES:,} bytes, this one has {len(raw):,}")
        await self._write(
            sql, uid=new_uid(), kind=ANNOUNCEMENT, channel=name, shard_channel=channel.name(Layout.TAGGED), raw=raw,
            now=self._clock.now(),
        )

    async def relay(self, most: int = 500) -> int:
        """Bring up to ``most`` of the oldest rows to Valkey and delete them; says how many were dealt with.

        May be cut off anywhere and repeated. ``Unavailable``: what could be delivered is, and the rest stays.
        """
        if not 1 <= most <= MOST_ROWS:
            raise Invalid(f"a turn of the outbox takes 1 to {MOST_ROWS} rows, got {most}")
        return await self._relay.turn(most)

    async def run(self) -> None:
        """Relay for ever: at once after a commit of this process, each second for those of others.

        While the database or Valkey is out of reach, or does not let us work (a password that was changed, a primary
        that became a replica, tables that are not there yet), it tries again, ever more seldom up to every ten seconds.
        """
        failures = 0
        while True:
            self._wake.clear()
            try:
                while await self.relay():
                    pass
            except (Invalid, SQLAlchemyError, Unavailable) as error:
                if not failures:
                    reason = type(error).__name__ if isinstance(error, SQLAlchemyError) else str(error)
                    _log.warning("the outbox is held up", reason=reason)
                failures += 1
                pause = min(LONGEST_PAUSE_SECONDS, 0.25 * 2 ** min(failures, 10))
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                continue
            if failures:
                _log.info("the outbox goes on", failures=failures)
                failures = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()

    # -- looking ----------------------------------------------------------------------------------------------------

    async def counts(self) -> OutboxCounts:
        """How many rows wait and how many failed. Counts them, so it is for people who look and not for a loop."""
        column = OUTBOX.c
        waiting = select(func.count(), func.min(column.written_at)).where(column.failed_at.is_(None))
        failed = select(func.count()).where(column.failed_at.is_not(None))
        async with self._database.reading() as sql:
            count, oldest_at = (await sql.execute(waiting)).one()
            return OutboxCounts(count, (await sql.execute(failed)).scalar_one(), oldest_at)

    async def failures(self, most: int = 100) -> Sequence[OutboxFailure]:
        """Rows that cannot be delivered, newest first."""
        columns = [OUTBOX.c[name] for name in OutboxFailure.__slots__]
        rows = select(*columns).where(OUTBOX.c.failed_at.is_not(None)).order_by(OUTBOX.c.failed_at.desc()).limit(most)
        async with self._database.reading() as sql:
            return [OutboxFailure(*row) for row in await sql.execute(rows)]

    async def retry(self, number: int) -> None:
        """Let a row that failed be tried again, after what stood in its way was mended."""
        row = update(OUTBOX).where(OUTBOX.c.number == number, OUTBOX.c.failed_at.is_not(None))
        async with self._database.transaction() as sql:
            if not (await sql.execute(row.values(failed_at=None, reason=""))).rowcount:
                raise NotFound(f"row {number} of the outbox is not among those that failed")
            self._database.after_commit(sql, self._wake.set)

    async def discard(self, number: int) -> None:
        """Delete a row that failed."""
        row = delete(OUTBOX).where(OUTBOX.c.number == number, OUTBOX.c.failed_at.is_not(None))
        async with self._database.transaction() as sql:
            if not (await sql.execute(row)).rowcount:
                raise NotFound(f"row {number} of the outbox is not among those that failed")

    async def _write(
        self, sql: AsyncConnection, *, uid: str, kind: str, raw: bytes, now: float, queue: str = "",
        category: int | None = None, due_at: float = 0.0, channel: bytes = b"", shard_channel: bytes = b"",
    ) -> None:
        self._database.after_commit(sql, self._wake.set)
        await sql.execute(insert(OUTBOX).values(
            uid=uid, kind=kind, queue=queue, category=category, due_at=due_at, channel=channel,
            shard_channel=shard_channel, raw=raw, written_at=now,
        ))


def _options(job: Job[..., Any] | None, uid: str) -> JobOptions | None:
    if job is None or not (job.keep_seconds or job.progress):
        return None
    return JobOptions(keep_seconds=job.keep_seconds, progress=uid if job.progress else "")
