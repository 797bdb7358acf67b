"""Whether this process can do its work now, and what it lacks: told to whoever sends it requests."""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from keystead.app import Running
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.jobs import ROOMS_QUEUE, Inspection
from keystead.operations.watchers import sql_trouble

ANSWER_SECONDS: Final = 2.0
# Anybody may ask, so that asking often costs no more than asking once in a while.
KEPT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """One part, and in a few words what is wrong with it; they hold no address and no secret."""

    name: str
    ok: bool
    says: str = ""


class Readiness:
    """Looks at every part that this process needs; at most once a second, however many ask."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._migrated = False
        self._looking = asyncio.Lock()
        self._kept: tuple[float, tuple[Check, ...]] | None = None

    async def checks(self) -> tuple[Check, ...]:
        """Every part as it is now, or was a second ago."""
        async with self._looking:
            if self._kept is None or time.monotonic() - self._kept[0] >= KEPT_SECONDS:
                self._kept = time.monotonic(), await self.look()
            return self._kept[1]

    async def look(self) -> tuple[Check, ...]:
        """Every part as it is now; within a few seconds, whatever is away."""
        parts: list[tuple[str, Callable[[], Awaitable[str]]]] = [
            ("valkey", self._valkey), ("sql", self._sql), ("migrations", self._migrations),
        ]
        if self._running.crewed is not None:
            parts.append(("workers", self._workers))
        found = await asyncio.gather(*(self._judged(part) for _, part in parts))
        return tuple(Check(name, not says, says) for (name, _), says in zip(parts, found, strict=True))

    async def _judged(self, part: Callable[[], Awaitable[str]]) -> str:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await part()
        except TimeoutError:
            return f"no answer within {ANSWER_SECONDS:g} s"
        except (KeysteadError, ErrorReply) as error:
            return type(error).__name__

    async def _valkey(self) -> str:
        for node in await self._running.valkey.nodes():
            told = await node.info("persistence")
            if int(told.get("loading", 0)):
                return "the server reads its data"
        return ""

    async def _sql(self) -> str:
        return await sql_trouble(self._running.database, ANSWER_SECONDS)

    async def _migrations(self) -> str:
        """Tables never go back by themselves, so that they are asked for until they were right once."""
        if not self._migrated:
            missing = await self._running.database.missing_steps()
            if missing:
                return f"{missing} steps of the tables are missing"
            self._migrated = True
        return ""

    async def _workers(self) -> str:
        """Whether a worker of the rooms' jobs in this very process gives signs of life."""
        pid, host = os.getpid(), socket.gethostname()
        for worker in await Inspection(self._running.valkey, self._running.clock).workers():
            state = worker.state
            if state is not None and state.pid == pid and state.host == host and ROOMS_QUEUE in state.queues.split():
                if state.stopping:
                    return "the worker of this process is stopping"
                if worker.alive:
                    return ""
        return "the worker of this process gives no sign of life"
