"""Connections of one's own, for commands that hold a connection: blocking reads, and pipelines that WAIT."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from keystead.engine.connection import Connection
from keystead.engine.endpoint import Endpoint, open_connection
from keystead.engine.failures import ServerAway
from keystead.engine.wire import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from keystead.settings import ValkeySettings

_FOREVER_SECONDS = 1e7  # a blocking read may wait as long as it likes; keep-alive notices a dead peer
_KEEP_IDLE = 8


class Dedicated:
    """Lends connections one borrower at a time and keeps a few for the next."""

    def __init__(self, find: Callable[[], Awaitable[Endpoint]], settings: ValkeySettings) -> None:
        self._find = find
        self._settings = replace(settings, command_timeout_seconds=_FOREVER_SECONDS)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._closed = False

    @property
    def lent(self) -> int:
        """How many connections are borrowed now."""
        return len(self._busy)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Connection]:
        """A connection for this block alone. Leaving before its last answer came closes it for good."""
        connection = await self._take()
        self._busy.add(connection)
        try:
            yield connection
        finally:
            self._busy.discard(connection)
            if connection.closed_because is None:
                if self._closed or len(self._idle) >= _KEEP_IDLE or connection.waiting_commands:
                    connection.abort("not needed any more")
                else:
                    self._idle.append(connection)

    async def _take(self) -> Connection:
        if self._closed:
            raise ServerAway("the client was closed; open a new one with connect()")
        while self._idle:
            connection = self._idle.pop()
            if connection.closed_because is None:
                return connection
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.outage_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                connection = await open_connection(
                    await self._find(), self._settings, on_lost=self._on_lost, replicas=self._settings.replicas
                )
                if not self._closed:
                    return connection
                connection.abort("the client was closed")
                raise ServerAway("the client was closed; open a new one with connect()")
            except ServerAway:
                if self._closed or loop.time() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _on_lost(self, connection: Connection, reason: str) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    async def aclose(self) -> None:
        self._closed = True
        for connection in [*self._idle, *self._busy]:
            connection.abort("the client was closed")
        self._idle.clear()
