"""The atomic steps of the distributed scheduler, one script each. Everything else is made of them.

A task is in exactly one place: *scheduled* until it is due, *ready* in the queue, or *processing*, where whoever works
on it holds a lease. Each step takes a connection or a pipeline first and may be called by any number of processes at
once; a process may die between any two of them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

import msgspec

from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Unavailable
from keystead.jobs.keys import (
    SCHEDULER_LEADER,
    TASKS_ACTIVE,
    TASKS_DEAD,
    TASKS_ORPHANS,
    TASKS_PAUSED,
    TASKS_PAYLOAD,
    TASKS_PROCESSING,
    TASKS_QUEUE,
    TASKS_SCHEDULED,
)
from keystead.jobs.models import Task
from keystead.keys import Executor, Reply
from keystead.patterns.derived import around

M = TypeVar("M", bound=Enum)

LONGEST_ERROR: Final = 2000
LOST_WORKER: Final = "its worker died or lost the server: the lease ended before the task did"


def _script(verb: str) -> Script:
    return Script("keystead.jobs", f"scripts/task_{verb}.lua")


SCHEDULE, CANCEL, REVIVE = _script("schedule"), _script("cancel"), _script("revive")
PROMOTE, RECLAIM = _script("promote"), _script("reclaim")
CLAIM, HEARTBEAT, COMPLETE, FAIL = _script("claim"), _script("heartbeat"), _script("complete"), _script("fail")

_SCHEDULED, _QUEUE, _PROCESSING = TASKS_SCHEDULED.at(), TASKS_QUEUE.at(), TASKS_PROCESSING.at()
_PAYLOAD, _DEAD, _ORPHANS, _PAUSED = TASKS_PAYLOAD.at(), TASKS_DEAD.at(), TASKS_ORPHANS.at(), TASKS_PAUSED.at()
_LEADER = SCHEDULER_LEADER.at().reference


class IfKnown(Enum):
    """What becomes of a task that is already known under the id."""

    KEEP = "keep"  # it stays as it is
    REPLACE = "replace"  # it gives way, unless it runs
    EARLIER = "earlier"  # it gives way if the new one is due earlier


class Scheduled(Enum):
    """What scheduling did."""

    NEW = "new"
    REPLACED = "replaced"
    EXISTS = "exists"  # left as it is
    RUNNING = "running"  # left as it is: it runs, so there is nothing to replace any more


class Cancelled(Enum):
    """What cancelling did."""

    CANCELLED = "cancelled"
    RUNNING = "running"  # it goes on to its end, and is not tried again if it fails
    UNKNOWN = "unknown"


class Revived(Enum):
    """What reviving did."""

    REVIVED = "revived"
    EXISTS = "exists"  # another of the same id waits; the dead one stays
    UNKNOWN = "unknown"


class Failed(Enum):
    """What became of a task whose try failed."""

    AGAIN = "again"
    DEAD = "dead"
    CANCELLED = "cancelled"
    LOST = "lost"  # it was not ours any more


class Refusal(Enum):
    """Why a task that was taken does not begin here."""

    TAKEN = "taken"
    DROPPED = "dropped"  # cancelled, or unknown
    PAUSED = "paused"  # it is in the queue again


@dataclass(frozen=True, slots=True)
class Claim:
    """Proof of a lease: whose the task is, and what is stored of it."""

    id: str
    holder: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Promoted:
    """How many due tasks moved, how many ids had no task, and when the next one is due."""

    moved: int
    dropped: int = 0
    next_at: float | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """Tasks without a lease: put back, given up, dropped since cancelled; and those still within their grace."""

    returned: int
    dead: int
    dropped: int
    waiting: int


def schedule(on: ScriptRunner, task: Task, if_known: IfKnown = IfKnown.KEEP) -> Awaitable[Scheduled]:
    """Let a task be due at its ``run_at``."""
    return SCHEDULE(
        on, keys=(_PAYLOAD, _SCHEDULED, _QUEUE),
        args=(task.id, float(task.run_at), TASKS_PAYLOAD.codec.encode(task), if_known.value), decode=_member(Scheduled),
    )


def cancel(on: ScriptRunner, task_id: str) -> Awaitable[Cancelled]:
    return CANCEL(on, keys=(_PAYLOAD, _SCHEDULED, TASKS_ACTIVE.at(task_id)), args=(task_id,),
                  decode=_member(Cancelled))


def revive(on: ScriptRunner, task_id: str, run_at: float) -> Awaitable[Revived]:
    """Let a task that was given up be due again, with all its tries."""
    return REVIVE(on, keys=(_DEAD, _PAYLOAD, _SCHEDULED), args=(task_id, float(run_at)), decode=_member(Revived))


def promote(on: ScriptRunner, leader: str, most: int, *, now: float) -> Awaitable[Promoted | None]:
    """Move due tasks to the queue, earliest first; None when ``leader`` does not lead any more."""

    def read(reply: Reply) -> Promoted | None:
        if len(reply) == 1:
            return Promoted(0, paused=True) if reply[0] == -2 else None
        return Promoted(reply[0], reply[1], float(reply[2]) if reply[2] else None)

    return PROMOTE(on, keys=(_LEADER, _SCHEDULED, _PAYLOAD, _QUEUE, _PAUSED), args=(leader, now, most), decode=read)


def reclaim(on: ScriptRunner, leader: str, *, now: float, grace_seconds: float) -> Awaitable[Reclaimed | None]:
    """Put back what nobody has worked on for the grace; None when ``leader`` does not lead any more.

    The grace is for those who have taken a task and not claimed it yet.
    """
    return RECLAIM(
        on, keys=(_LEADER, _PROCESSING, _PAYLOAD, _QUEUE, _ORPHANS, _DEAD),
        args=(leader, now, float(grace_seconds), msgspec.json.encode(LOST_WORKER),
              *around(TASKS_ACTIVE, "task_id", {}, on.layout)),
        decode=lambda reply: Reclaimed(*reply) if len(reply) == 4 else None,
    )


async def take(valkey: Valkey, wait_seconds: float) -> bytes | None:
    """Move the id that is due longest to those being worked on; waits for one if there is none. It must be claimed."""
    queue, processing = _QUEUE.name(valkey.layout), _PROCESSING.name(valkey.layout)
    taken: bytes | None = await valkey.execute_command("BLMOVE", queue, processing, "RIGHT", "LEFT", wait_seconds)
    return taken


def take_now(on: Executor) -> Awaitable[bytes | None]:
    """As ``take``, without waiting."""
    command = ("LMOVE", _QUEUE.name(on.layout), _PROCESSING.name(on.layout), "RIGHT", "LEFT")
    return on.run(command, lambda reply: reply)


async def take_many(valkey: Valkey, most: int, wait_seconds: float) -> list[bytes]:
    """Up to ``most`` ids, those first that are due longest; waits for the first one only."""
    first = await take(valkey, wait_seconds)
    if first is None:
        return []
    try:
        async with valkey.pipeline(transaction=False) as pipeline:
            more = [take_now(pipeline) for _ in range(most - 1)]
            await pipeline.execute()
        return [first, *[raw for each in more if (raw := await each) is not None]]
    except Unavailable:
        return [first]  # the others will be reclaimed; this one is ours to begin


def forget(on: Executor, raw_id: bytes) -> Awaitable[int]:
    """Remove an id that cannot be one from those being worked on."""
    return on.run(("LREM", _PROCESSING.name(on.layout), 0, raw_id), int)


def claim(on: ScriptRunner, task_id: str, holder: str, lease_seconds: float) -> Awaitable[Claim | Refusal]:
    """Begin a task that was taken. ``holder`` is ``<worker>:<claim>``, never used before."""

    def read(reply: list[bytes]) -> Claim | Refusal:
        return Claim(task_id, holder, reply[1]) if len(reply) > 1 else Refusal(reply[0].decode())

    return CLAIM(
        on, keys=(_PROCESSING, _PAYLOAD, TASKS_ACTIVE.at(task_id), _QUEUE, _ORPHANS, _PAUSED),
        args=(task_id, holder, _ms(lease_seconds)), decode=read,
    )


def heartbeat(on: ScriptRunner, held: Claim, lease_seconds: float) -> Awaitable[bool]:
    """Keep the lease; false: the task is someone else's, and must be left alone."""
    return HEARTBEAT(on, keys=(TASKS_ACTIVE.at(held.id),), args=(held.holder, _ms(lease_seconds)), decode=bool)


def complete(on: ScriptRunner, held: Claim) -> Awaitable[bool]:
    """Forget a task that is done; false: the lease was lost, so it may be run again, or was."""
    return COMPLETE(on, keys=(_PROCESSING, _PAYLOAD, TASKS_ACTIVE.at(held.id)), args=(held.id, held.holder),
                    decode=bool)


def fail(
    on: ScriptRunner, held: Claim, error: str, due_at: float, *, counts: bool = True, give_up: bool = False
) -> Awaitable[Failed]:
    """End a try that failed: the task is due again at ``due_at``, or dead after its last try or with ``give_up``."""
    # What is no task is kept as the argument of one, so that someone can look at it.
    error = storable(error)
    instead = Task(held.id, "", {"raw": held.raw.decode(errors="backslashreplace")}, 0.0, 0.0, last_error=error)
    return FAIL(
        on, keys=(_PROCESSING, _PAYLOAD, TASKS_ACTIVE.at(held.id), _SCHEDULED, _DEAD),
        args=(held.id, held.holder, float(due_at), msgspec.json.encode(error), int(counts), int(give_up),
              TASKS_DEAD.codec.encode(instead)),
        decode=_member(Failed),
    )


def storable(error: str) -> str:
    """An error cut to a length that can be kept, and without what is no Unicode."""
    return error[:LONGEST_ERROR].encode(errors="replace").decode()


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _member(kind: type[M]) -> Callable[[bytes], M]:
    return lambda reply: kind(reply.decode())
