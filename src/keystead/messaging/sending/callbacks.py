"""Callbacks of messages: the job that follows is queued in the step that settles the message."""

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import JobRef, JobRelay
from keystead.keys.executor import Executor
from keystead.messaging.sending.keys import JOBS_OUTBOX


def queue_job(writes: Executor, ref: JobRef | None, outcome: object, now: float, *, uid: str = "") -> None:
    """Queue a callback; nothing where there is none. ``outcome`` reaches it as ``data_raw``; None: it is told nothing.

    Belongs into the guarded writes of the change, so that it is queued exactly when that happens. ``uid`` is for a
    change that may be made twice all the same: one uid is one job.
    """
    if ref is not None:
        JOBS_OUTBOX.add(writes, ref, outcome, now=now, uid=uid)


def callbacks_relay(valkey: Valkey, clock: Clock) -> JobRelay:
    """Work of the crew on a cluster: callbacks lie in another slot than the queues."""
    return JOBS_OUTBOX.relay(valkey, clock)
