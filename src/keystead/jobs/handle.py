"""What the one who enqueued holds in hand: how the job is doing, its end, and a way to call it off."""

import asyncio
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import NotFound
from keystead.jobs.keys import CONTROL, DONE, Queue
from keystead.jobs.models import Control, EndedStatus, JobState

LOOK_SECONDS = 1.0
ENDED: Final[tuple[EndedStatus, ...]] = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobHandle:
    """A job that was queued. ``is_new`` is false when a unique key gave the job that already had it."""

    uid: str
    queue: str
    valkey: Valkey
    clock: Clock
    is_new: bool = True

    async def state(self) -> JobState | None:
        """Its state; None for a job that is not kept, or was forgotten."""
        return await Queue(self.queue).job(self.uid).get(self.valkey)

    async def wait(self, timeout_seconds: float) -> JobState:
        """Its state once it has ended, well or not. For a job enqueued with ``keep_seconds`` or ``done``.

        Raises ``TimeoutError`` when it has not ended in time and ``NotFound`` for a job without a state.
        """
        async with asyncio.timeout(timeout_seconds), self.valkey.hub().subscribe(DONE.at(self.uid)) as ended:
            while True:
                # The channel only makes it quicker: a message that was lost is made up for by looking.
                state = await self.state()
                if state is None:
                    raise NotFound(
                        f"job {self.uid}: no state is kept; enqueue it with options(keep_seconds=...), and wait within "
                        "that time"
                    )
                if state.status in ENDED:
                    return state
                await ended.get(LOOK_SECONDS)

    async def cancel(self) -> bool:
        """Ask that it does not run, or stops; says false when it is known to have ended.

        A queued job is dropped when a worker meets it. A running async one is cancelled where it waits; one that runs
        in a thread goes on to its end.
        """
        state = await self.state()
        if state is not None and state.status in ENDED:
            return False
        await Queue(self.queue).cancelled.add(self.valkey, self.uid, self.clock.now())
        await CONTROL.at().publish(self.valkey, Control(cancel=self.uid))
        return True


@dataclass(frozen=True, slots=True)
class BatchHandle:
    """Jobs that were queued together."""

    uid: str
    queue: str
    valkey: Valkey

    async def progress(self) -> "BatchProgress":
        found = await Queue(self.queue).batch(self.uid).all(self.valkey)
        if "total" not in found:
            raise NotFound(f"batch {self.uid} is not known any more")
        return BatchProgress(int(found["total"]), int(found["left"]), int(found["failed"]))


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How many jobs a batch has, how many have not ended, and how many failed."""

    total: int
    left: int
    failed: int
