"""Enqueuing: from a call to a record in a queue, in one round trip or inside the caller's transaction."""

import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, Self, TypedDict, Unpack, overload

from keystead.clock import Clock, SystemClock
from keystead.engine import Pipeline, Script, Valkey, connect, sync_clock
from keystead.errors import Invalid, NotFound, Unavailable
from keystead.jobs.book import LOW_RESOURCE_COST, Job, JobBook
from keystead.jobs.callbacks import check_callback
from keystead.jobs.handle import BatchHandle, JobHandle
from keystead.jobs.keys import BATCH_SECONDS, OPEN_SECONDS, QUEUES, UNIQUE_SECONDS, Queue
from keystead.jobs.models import JobOptions, JobRecord, JobRef
from keystead.jobs.progress import Progress
from keystead.jobs.records import encode_record, new_uid
from keystead.keys import Argument, KeyReference, Layout, ListRef, Reply

ENQUEUE = Script("keystead.jobs", "scripts/enqueue.lua")

# Values of one RPUSH: enough that the round trip does not count, few enough that the server is not held up.
PUSH_ITEMS = 500

P = ParamSpec("P")


class Wishes(TypedDict, total=False):
    """How a job is to be queued; see ``Jobs.options``."""

    on: Pipeline | None
    queue: str
    delay_seconds: float
    at: float
    unique: str
    unique_seconds: float
    keep_seconds: float
    after: Sequence[JobHandle | str]
    progress: bool
    done: bool
    on_success: JobRef | None
    on_failure: JobRef | None
    tries: int
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class _Chosen:
    on: Pipeline | None = None
    queue: str = ""
    delay_seconds: float = 0.0
    at: float = 0.0
    unique: str = ""
    unique_seconds: float = UNIQUE_SECONDS
    keep_seconds: float = 0.0
    after: Sequence[JobHandle | str] = ()
    progress: bool = False
    done: bool = False
    on_success: JobRef | None = None
    on_failure: JobRef | None = None
    tries: int = 0
    timeout_seconds: float = 0.0


class Jobs:
    """Enqueues jobs. ``book`` is only needed to enqueue by name with the arguments checked."""

    def __init__(self, valkey: Valkey, book: JobBook | None = None, *, clock: Clock | None = None) -> None:
        self.valkey = valkey
        self.book = JobBook() if book is None else book  # an empty one may be filled later
        self.clock: Clock = clock or SystemClock()
        self._chosen = _Chosen()
        self._plain = True
        self._listed: set[str] = {""}  # queues that are known to be listed; shared with what ``options`` gives

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, book: JobBook | None = None, *, replicas: int = 0) -> AsyncIterator[Self]:
        """A client with a connection of its own, for as long as the block runs.

        With ``replicas`` a job counts as queued when so many of them have it.
        """
        valkey = await connect(url, replicas=replicas)
        try:
            clock = SystemClock()
            await sync_clock(valkey, clock)
            yield cls(valkey, book, clock=clock)
        finally:
            await valkey.aclose()

    def options(self, **wishes: Unpack[Wishes]) -> "Jobs":
        """The same client, with wishes for what it enqueues.

        ``on``: a pipeline or transaction of the caller. ``queue``: a named queue. ``delay_seconds`` or ``at`` (unix
        seconds): not before then. ``unique``: while a job with this key has not ended, no other is queued, and the
        handle given back is that of the one; after ``unique_seconds``, a week at most, the key is free in any case.
        ``keep_seconds``: state and result can be read so long after the end, and for 30 days of a job that does not
        end. ``after``: only once these jobs, of the same queue and kept, have succeeded. ``progress``: whoever watches
        sees it from ``queued`` on. ``done``: ``wait`` is woken by the channel ``ps:job:{uid}``. ``on_success`` and
        ``on_failure``: a job that follows, in the same queue. ``tries`` and ``timeout_seconds``: instead of what the
        job declares.
        """
        try:
            chosen = replace(self._chosen, **wishes)
        except TypeError as error:
            raise Invalid(f"{error}; see Jobs.options for what there is") from None
        if chosen.delay_seconds and chosen.at:
            raise Invalid("a job runs after a delay or at a time, not both")
        if not (math.isfinite(chosen.delay_seconds) and math.isfinite(chosen.at)):
            raise Invalid("a job runs after some seconds or at some time; these are no numbers of seconds")
        for name, least, most in (("keep_seconds", 0.0, OPEN_SECONDS), ("unique_seconds", 0.001, UNIQUE_SECONDS)):
            if not least <= getattr(chosen, name) <= most:
                raise Invalid(f"{name} is {getattr(chosen, name)}; it may be from {least:g} to {most:,}")
        changed: Jobs = object.__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed._chosen = chosen
        changed._plain = chosen == _Chosen(on=chosen.on, queue=chosen.queue)
        return changed

    # -- one job ----------------------------------------------------------------------------------------------------

    @overload
    def enqueue(self, work: Job[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[JobHandle]: ...
    @overload
    def enqueue(self, work: str, /, **kwargs: Any) -> Awaitable[JobHandle]: ...
    def enqueue(self, work: Any, /, *args: Any, **kwargs: Any) -> Awaitable[JobHandle]:
        """Queue one job, in one round trip, or as part of the pipeline given by ``options(on=...)``.

        Once this returns, the job will run at least once or be seen as failed. Arguments are checked here, so that a
        misspelt one fails in front of whoever wrote it. A job known only by name is checked if the book has it.
        """
        if args:
            raise Invalid(f"job {_name(work)}: arguments travel by name, as in enqueue(job, name=value)")
        job = work if isinstance(work, Job) else self.book.get(work)
        if job is not None:
            job.check(kwargs)
        name = work if job is None else job.name
        now, uid, chosen = self.clock.now(), new_uid(), self._chosen
        queue = Queue(chosen.queue)
        if self._plain and (job is None or not (job.keep_seconds or job.progress)):
            handle = JobHandle(uid, queue.name, self.valkey, self.clock)
            raw = encode_record(name, kwargs, now, uid=uid)
            on = chosen.on if chosen.on is not None else self.valkey
            sent = on.run(("RPUSH", self._list(queue, job).name(on.layout), raw), lambda length: handle)
        else:
            sent = self._enqueue_with_options(name, job, kwargs, now, uid, queue)
        # A caller's transaction holds what the caller put in, and may be bound to another slot.
        return sent if queue.name in self._listed or chosen.on is not None else self._listing(queue, sent)

    async def _listing(self, queue: Queue, sent: Awaitable[JobHandle]) -> JobHandle:
        await self._list_queue(queue)
        return await sent

    async def _list_queue(self, queue: Queue) -> None:
        """Let a named queue be seen, also while no worker serves it. Once for each client is enough."""
        if queue.name not in self._listed:
            with contextlib.suppress(Unavailable):
                await QUEUES.at().add(self.valkey, queue.name)
                self._listed.add(queue.name)

    def _enqueue_with_options(
        self, name: str, job: Job[..., Any] | None, kwargs: dict[str, Any], now: float, uid: str, queue: Queue
    ) -> Awaitable[JobHandle]:
        chosen = self._chosen
        on: Valkey | Pipeline = chosen.on if chosen.on is not None else self.valkey
        options = self._options_of(job, uid)
        due = now + chosen.delay_seconds if chosen.delay_seconds > 0 else chosen.at
        raw = encode_record(name, kwargs, now, uid=uid, options=options, due_at=float(due))
        parents = list(options.after)
        handle = JobHandle(uid, queue.name, self.valkey, self.clock)

        def decode(reply: Reply) -> JobHandle:
            if isinstance(reply, int):
                raise NotFound(
                    f"job {name}: {parents[reply - 1]} is not known; a job to wait for must be in the same queue, be "
                    "enqueued with keep_seconds, and its state must not have expired"
                )
            found = reply.decode()
            return handle if found == uid else replace(handle, uid=found, is_new=False)

        unique = queue.unique(options.unique or "-")
        keys: list[KeyReference] = [self._list(queue, job), queue.delayed, queue.job(uid), unique, queue.waiting]
        for parent in parents:
            keys += (queue.job(parent), queue.dependents(parent))
        arguments = (
            raw, uid, name, now, float(due), OPEN_SECONDS * 1000 if options.keep_seconds else 0,
            round(chosen.unique_seconds * 1000) if options.unique else 0,
        )
        if not options.progress:
            return ENQUEUE(on, keys=keys, args=arguments, decode=decode)
        progress = Progress(uid, self.clock)
        if isinstance(on, Pipeline):
            progress.queued(on)
            return ENQUEUE(on, keys=keys, args=arguments, decode=decode)
        return self._with_progress(progress, queue, keys, arguments, decode)

    async def _with_progress(
        self, progress: Progress, queue: Queue, keys: list[KeyReference], arguments: tuple[Argument, ...],
        decode: Callable[[Reply], JobHandle],
    ) -> JobHandle:
        if queue.name and self.valkey.layout is not Layout.PLAIN:
            # Two slots: the first event may then tell of a job that was never queued, and is forgotten in half an hour.
            await progress.queued(self.valkey)
            queued: JobHandle = await ENQUEUE(self.valkey, keys=keys, args=arguments, decode=decode)
            return queued
        async with self.valkey.pipeline(transaction=True) as block:
            progress.queued(block)
            handle: Awaitable[JobHandle] = ENQUEUE(block, keys=keys, args=arguments, decode=decode)
            await block.execute()
        return await handle

    def _options_of(self, job: Job[..., Any] | None, uid: str) -> JobOptions:
        chosen = self._chosen
        for callback in filter(None, (chosen.on_success, chosen.on_failure)):
            check_callback(callback)
        keep = chosen.keep_seconds or (job.keep_seconds if job is not None else 0.0)
        after = tuple(dict.fromkeys(one if isinstance(one, str) else one.uid for one in chosen.after))
        return JobOptions(
            keep_seconds=keep or (60.0 if chosen.done or after else 0.0), unique=chosen.unique,
            after=after, progress=uid if chosen.progress or (job is not None and job.progress) else "",
            done=uid if chosen.done else "", on_success=chosen.on_success, on_failure=chosen.on_failure,
            tries=chosen.tries, timeout_seconds=chosen.timeout_seconds,
        )

    def _list(self, queue: Queue, job: Job[..., Any] | None) -> ListRef[JobRecord]:
        # A job of another category than the usual one is sorted already; a worker need not pass it on.
        if job is None or job.category == LOW_RESOURCE_COST:
            return queue.work.queue
        return queue.category(job.category.id)

    # -- many jobs --------------------------------------------------------------------------------------------------

    async def enqueue_many(self, work: Job[..., Any] | str, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """Queue one job for each set of arguments and return their uids, in order.

        Five hundred travel in a command. If the connection is lost on the way, ``Unavailable`` or ``ReplyLost`` is
        raised, and those up to some point are queued. Of the options only ``queue`` and ``on`` may be set.
        """
        if not self._plain:
            raise Invalid("enqueue_many takes no options but queue and on; use enqueue for each, or enqueue_batch")
        job = work if isinstance(work, Job) else self.book.get(work)
        name = work if isinstance(work, str) else work.name
        chosen, now = self._chosen, self.clock.now()
        on: Valkey | Pipeline = chosen.on if chosen.on is not None else self.valkey
        queue = Queue(chosen.queue)
        if chosen.on is None:
            await self._list_queue(queue)
        target = self._list(queue, job).name(on.layout)
        uids: list[str] = []
        raws: list[bytes] = []
        checked: set[frozenset[str]] = set()
        for given in many:
            kwargs = dict(given)
            shape = frozenset(kwargs)
            if job is not None and shape not in checked:
                job.check(kwargs)
                checked.add(shape)
            uid = new_uid()
            uids.append(uid)
            raws.append(encode_record(name, kwargs, now, uid=uid))
            if len(raws) == PUSH_ITEMS:
                await self._push(on, target, raws)
                raws = []
        if raws:
            await self._push(on, target, raws)
        return uids

    async def _push(self, on: Valkey | Pipeline, target: bytes, raws: list[bytes]) -> None:
        pushed = on.run(("RPUSH", target, *raws), int)
        if on is self.valkey:
            await pushed

    async def enqueue_batch(
        self, calls: Sequence[tuple[Job[..., Any] | str, Mapping[str, Any]]], *, then: JobRef | None = None
    ) -> BatchHandle:
        """Queue jobs that belong together, all or none; when the last has ended, ``then`` is queued.

        ``then`` runs whether they succeeded or failed; the handle tells how many failed. Of the options only ``queue``
        may be set.
        """
        if not calls:
            raise Invalid("a batch needs at least one job")
        if not self._plain or self._chosen.on is not None:
            raise Invalid("enqueue_batch takes no options but queue")
        chosen, now, batch = self._chosen, self.clock.now(), new_uid()
        queue, options = Queue(chosen.queue), JobOptions(batch=batch)
        lists: dict[bytes, list[bytes]] = {}
        for work, kwargs in calls:
            job = work if isinstance(work, Job) else self.book.get(work)
            if job is not None:
                job.check(dict(kwargs))
            name = work if isinstance(work, str) else work.name
            raw = encode_record(name, dict(kwargs), now, uid=new_uid(), options=options)
            lists.setdefault(self._list(queue, job).name(self.valkey.layout), []).append(raw)
        facts: dict[str, bytes | int] = {"total": len(calls), "left": len(calls), "failed": 0}
        if then is not None:
            facts["then"] = encode_record(then.name, then.kwargs, now, uid=new_uid())
        await self._list_queue(queue)
        key = queue.batch(batch).name(self.valkey.layout)
        async with self.valkey.pipeline(transaction=True) as block:
            block.run(("HSET", key, *(part for pair in facts.items() for part in pair)), int)
            block.run(("EXPIRE", key, BATCH_SECONDS), int)
            for target, raws in lists.items():
                for first in range(0, len(raws), PUSH_ITEMS):
                    block.run(("RPUSH", target, *raws[first : first + PUSH_ITEMS]), int)
            await block.execute()
        return BatchHandle(batch, queue.name, self.valkey)

    # -- control ----------------------------------------------------------------------------------------------------

    def handle(self, uid: str, queue: str = "") -> JobHandle:
        """The handle of a job known by its uid."""
        return JobHandle(uid, queue or self._chosen.queue, self.valkey, self.clock)


def _name(work: Job[..., Any] | str) -> str:
    return work if isinstance(work, str) else work.name
