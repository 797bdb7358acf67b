"""Signs of life: while a worker gives them nobody touches what it holds; when they end, anyone may adopt it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Unavailable
from keystead.keys import FlagRef, KeyReference, SetRef

LEAVE = Script("keystead.patterns", "scripts/worklist/leave.lua")
LINGER_SECONDS = 1.0


class Liveness:
    """The sign of life of one named worker: a key that expires, and its name in the set of workers."""

    def __init__(
        self, name: str, purgatory: KeyReference, mark: FlagRef, workers: SetRef[str], seconds: float
    ) -> None:
        self.name = name
        self.mark, self.workers = mark, workers
        self._purgatory = purgatory
        self._seconds = seconds

    def beat(self, on: Valkey | Pipeline) -> Awaitable[None]:
        """A sign of life, good for the declared time."""
        commands = [
            ("SADD", self.workers.name(on.layout), self.name),
            ("SET", self.mark.name(on.layout), "1", "PX", round(self._seconds * 1000)),
        ]
        return on.run_block(commands, lambda replies: None, repeat=True)

    def leave(self, on: ScriptRunner) -> Awaitable[bool]:
        """Let the sign of life end within a second, so that what is left can be adopted; says whether anything is.

        Not at once: a wait that was just broken off may still receive an item on the server.
        """
        linger_ms = max(1, round(min(LINGER_SECONDS, self._seconds / 3) * 1000))
        return LEAVE(on, keys=(self._purgatory, self.mark), args=(linger_ms,), decode=bool)

    @asynccontextmanager
    async def alive(self, valkey: Valkey) -> AsyncIterator[None]:
        """Give signs of life while the block runs, and leave at its end.

        A server that is away is tried again; meanwhile the sign may expire and others adopt what is held here. If it is
        away at the end, the sign is left to expire.
        """
        await self.beat(valkey)
        stop = asyncio.Event()
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_beating(valkey, stop))
                try:
                    yield
                except Exception as error:  # raised again below: a task group would wrap what the caller must see
                    failure = error
                finally:
                    stop.set()
            if failure is not None:
                raise failure
        finally:
            with contextlib.suppress(Unavailable):  # then it ends by itself, and must not hide how the block ended
                await self.leave(valkey)

    async def _keep_beating(self, valkey: Valkey, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                async with asyncio.timeout(self._seconds / 3):
                    await stop.wait()
            except TimeoutError:
                try:
                    await self.beat(valkey)
                except Unavailable:
                    continue
