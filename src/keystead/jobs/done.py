"""The completion channel: a caller who waits until a job has ended, well or not.

The message can be missed by whoever subscribes late, so the waiting begins before the job is queued.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final

from keystead.engine import Listener, Valkey
from keystead.ids import new_uid
from keystead.jobs.keys import DONE
from keystead.keys import Executor

SAYS_DONE: Final = b"done"


def say_done(on: Executor, job_uid: str) -> Awaitable[int]:
    """Say that a job has ended, on a connection or a pipeline; answers how many heard it on the answering server."""
    return DONE.at(job_uid).publish(on, SAYS_DONE)


class DoneWaiter:
    """Listens for the end of one job. Give ``uid`` to the job as ``job_uid``."""

    def __init__(self, uid: str, listener: Listener) -> None:
        self.uid = uid
        self._listener = listener
        self._heard = False

    @property
    def may_have_missed_it(self) -> bool:
        """Whether the subscription was interrupted: then the end may have been said unheard."""
        return not self._heard and self._listener.gaps > 0

    async def wait(self, timeout_seconds: float) -> bool:
        """Whether the end was heard in time. It says nothing about success; False means that nothing was heard."""
        end = asyncio.get_running_loop().time() + timeout_seconds
        while not self._heard:
            left = end - asyncio.get_running_loop().time()
            message = await self._listener.get(max(0.0, left))
            if message is None:
                break
            self._heard = message.payload == SAYS_DONE
        return self._heard


@asynccontextmanager
async def awaiting_done(valkey: Valkey, job_uid: str = "") -> AsyncIterator[DoneWaiter]:
    """Listen for the end of a job that is queued inside the block, with a fresh uid unless one is given.

    Once the block is entered the server has confirmed the subscription, so the end of a job queued after that is heard.
    """
    uid = job_uid or new_uid("job")
    async with valkey.hub().subscribe(DONE.at(uid)) as listener:
        yield DoneWaiter(uid, listener)
