"""Jobs that follow from a change under another tag, on one server and on a cluster.

On one server the job is pushed onto its queue in the step of the change. On a cluster the queue lies elsewhere: there
the job goes to an outbox under the tag of the change, and a relay brings it to its queue, each uid once.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.jobs.callbacks import callback_record, job_list
from keystead.jobs.crew import pause, unless_stopped
from keystead.jobs.keys import DELIVERED, DELIVERED_NAMED, HOT, QUEUES, ROOMS_QUEUE, Queue
from keystead.jobs.models import JobRecord, JobRef
from keystead.jobs.records import new_uid
from keystead.keys import Keyspace, Layout, SetKey
from keystead.keys.executor import Executor
from keystead.patterns import Delivery, Outbox, OutboxEntry
from keystead.telemetry import logger

WAIT_SECONDS: Final = 5.0
OTHERS_SECONDS: Final = 1.0  # queues that nobody waits on are looked at so often
AWAY_SECONDS: Final = 1.0
BATCH_ITEMS: Final = 500

_log = logger("jobs")


class JobOutbox:
    """Declares ``{stem}:{queue}`` with ``:dead``, and ``{stem}_queues``, under the tag of the keyspace or ``tag``."""

    def __init__(self, keyspace: Keyspace, stem: str, *, tag: str | None = None, writers: tuple[str, ...] = ()) -> None:
        self.outbox: Outbox[JobRecord] = Outbox(
            keyspace, f"{stem}:{{queue}}", JobRecord, personal=True, tag=tag, writers=writers,
            readers=("jobs.job_outbox",),
            purpose="jobs on their way to a queue of another slot, oldest left; hot is the usual queue",
        )
        self.queues: SetKey[str] = SetKey(
            keyspace, f"{stem}_queues", str, member="name of a queue", tag=tag, writers=writers,
            readers=("jobs.job_outbox",), purpose="queues that jobs were ever on their way to",
        )

    def add(self, on: Executor, ref: JobRef, outcome: object = None, *, now: float, uid: str = "") -> None:
        """Queue a job in the step of the change it follows from: on guarded writes or a transaction.

        It is told ``outcome`` as ``data_raw``, unless that is None. ``uid`` names it where the same change may be made
        twice: on a cluster a uid that comes again within a day is one job. Without it, each call is a job.
        """
        queue = Queue(ref.queue if isinstance(ref.queue, str) else "")
        uid = uid or new_uid()
        record = (
            JobRecord(ref.name, ref.kwargs, now, uid) if outcome is None
            else callback_record(ref, outcome, queued_at=now, uid=uid)
        )
        if on.layout is Layout.PLAIN:
            job_list(queue.name).push_right(on, record)
        else:
            self.outbox.at(queue.name or HOT).add(on, record)
            self.queues.at().add(on, queue.name or HOT)

    async def drain(self, valkey: Valkey, *, now: float) -> int:
        """Bring everything that waits to its queue; says how many jobs. Any number may do so at once."""
        names = await self.queues.at().members(valkey)
        return sum([await self._drain(valkey, name, now) for name in names])

    async def _drain(self, valkey: Valkey, name: str, now: float) -> int:
        queue = Queue(name)
        outbox = self.outbox.at(name)

        async def deliver(entries: Sequence[OutboxEntry[JobRecord]]) -> Delivery:
            pairs = [(entry.uid, entry.raw) for entry in entries]
            if not queue.name:
                await DELIVERED.deliver(valkey, queue.work.queue, pairs)
            else:
                await QUEUES.at().add(valkey, queue.name)
                await DELIVERED_NAMED.deliver(valkey, queue.work.queue, pairs, queue=queue.name)
            return Delivery.ACCEPTED

        return await outbox.drain(valkey, deliver, now=now, most=BATCH_ITEMS)

    def relay(self, valkey: Valkey, clock: Clock) -> "JobRelay":
        """The work of bringing jobs to their queues; for a crew."""
        return JobRelay(self, valkey, clock)


class JobRelay:
    """Brings jobs of an outbox to their queues until it is told to stop. On one server there is nothing to do."""

    def __init__(self, outbox: JobOutbox, valkey: Valkey, clock: Clock) -> None:
        self._outbox, self._valkey, self._clock = outbox, valkey, clock

    async def work(self, stop: asyncio.Event) -> None:
        """The usual queue and that of our own rooms are waited on, others are looked at each second."""
        if self._valkey.layout is Layout.PLAIN:
            return
        async with asyncio.TaskGroup() as tasks:
            for name in (HOT, ROOMS_QUEUE):
                tasks.create_task(self._relay(name, stop))
            tasks.create_task(self._relay("", stop))

    async def _relay(self, name: str, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                if name:
                    await self._outbox._drain(self._valkey, name, self._clock.now())
                    await unless_stopped(stop, self._outbox.outbox.at(name).wait(self._valkey, WAIT_SECONDS))
                else:
                    await self._outbox.drain(self._valkey, now=self._clock.now())
                    await pause(OTHERS_SECONDS, stop)
            except Unavailable as error:
                _log.warning("jobs cannot be brought to their queues for now", reason=str(error))
                await pause(AWAY_SECONDS, stop)
