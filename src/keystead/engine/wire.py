"""A connection that heals itself: the one that all tasks of a process share for one server."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import redis.exceptions

from keystead.engine.connection import Connection, Reply
from keystead.engine.endpoint import Endpoint, open_connection
from keystead.engine.failures import LoginRefused, NotSent, ServerAway, ServerTooOld
from keystead.errors import KeysteadError
from keystead.settings import ValkeySettings
from keystead.telemetry import counts, logger

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0
_LOOK_SECONDS = 0.02

_log = logger("engine")
counts.describe("wire_reconnects", "connections that were lost and replaced")
counts.describe("wire_answers_lost", "commands whose answer was lost with a connection")


class Wire:
    """The current connection to one server, replaced whenever it breaks.

    ``connection`` is ready to use, or ``None`` while the server is away. ``find`` says where the server is each
    time, so that a follower of a sentinel ends up at the new primary.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[Endpoint]],
        settings: ValkeySettings,
        *,
        on_push: Callable[[list[Reply]], None] | None = None,
        on_open: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> None:
        self.connection: Connection | None = None
        self.generation = 0
        self.reconnects = 0
        self.last_problem = ""
        self.closed = False
        self._find = find
        self._settings = settings
        self._on_push = on_push
        self._on_open = on_open
        self._healing: asyncio.Task[None] | None = None
        self._news: asyncio.Future[None] | None = None
        self._fatal: LoginRefused | ServerTooOld | None = None
        self._past_commands = 0
        self._replaced: set[Connection] = set()

    @property
    def commands(self) -> int:
        """Commands sent over all connections so far."""
        return self._past_commands + (self.connection.commands if self.connection else 0)

    async def open(self) -> None:
        """Connect for the first time. Raises what went wrong at once, without waiting for the server to come."""
        if self.connection is None:
            await self._connect()

    async def ready(self, size: int, deadline: float) -> Connection:
        """The connection, once it is up and has room for ``size`` bytes; ``ServerAway`` when ``deadline`` passes."""
        loop = asyncio.get_running_loop()
        while True:
            connection = self.connection
            if connection is not None:
                if not connection.congested:
                    return connection
                with contextlib.suppress(NotSent):
                    await connection.room(size)
                    return connection
                continue
            if self.closed:
                raise ServerAway("the client was closed; open a new one with connect()")
            if self._fatal is not None:
                raise type(self._fatal)(str(self._fatal))
            if loop.time() >= deadline:
                raise ServerAway(f"the server is away: {self.last_problem}")
            self._heal()
            if self._news is None or self._news.done():
                self._news = loop.create_future()
            try:
                async with asyncio.timeout_at(deadline):
                    await asyncio.shield(self._news)
            except TimeoutError:
                continue

    def replace(self, connection: Connection, reason: str) -> None:
        """Stop using this connection, for example because its server is no longer the primary.

        What is under way on it is still answered; new commands wait for the next connection.
        """
        if self.connection is not connection:
            return
        self._set_aside(connection, reason)
        self._replaced.add(connection)
        self._drain(connection)

    def _drain(self, connection: Connection) -> None:
        if connection.waiting_commands and connection.closed_because is None and not self.closed:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._drain, connection)
            return
        self._replaced.discard(connection)
        connection.abort("replaced")

    async def aclose(self) -> None:
        self.closed = True
        self._tell()
        healing, self._healing = self._healing, None
        if healing is not None:
            healing.cancel()
            await asyncio.wait((healing,))
        connection, self.connection = self.connection, None
        for replaced in list(self._replaced):
            replaced.abort("the client was closed")
        if connection is not None:
            await connection.aclose()

    async def _connect(self) -> None:
        endpoint = await self._find()
        connection = await open_connection(
            endpoint,
            self._settings,
            on_lost=self._on_lost,
            on_push=self._on_push,
            replicas=self._settings.replicas if self._on_push is None else 0,  # who listens writes nothing
        )
        try:
            if self._on_open is not None:
                await self._on_open(connection)
        except BaseException:
            connection.abort("could not be set up")
            raise
        if self.closed:
            connection.abort("the client was closed")
        if connection.closed_because is not None:
            raise ServerAway(f"{endpoint.display} went away again: {connection.closed_because}")
        self._fatal = None
        self.connection = connection
        self.generation += 1
        self._tell()

    def _on_lost(self, connection: Connection, reason: str) -> None:
        self.last_problem = reason
        if connection is self.connection:
            self._set_aside(connection, reason)

    def _set_aside(self, connection: Connection, reason: str) -> None:
        self._past_commands += connection.commands
        self.connection = None
        if self.closed:
            return
        self.reconnects += 1
        counts.add("wire_reconnects")
        _log.warning("connection lost", reason=reason)
        self._heal()

    def _heal(self) -> None:
        if self._healing is None and not self.closed:
            self._healing = asyncio.get_running_loop().create_task(self._reconnect(), name="keystead wire reconnect")

    async def _reconnect(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        # Callers who wait for a short time only must see a server that is back within it.
        longest = max(FIRST_PAUSE_SECONDS, min(LONGEST_PAUSE_SECONDS, self._settings.outage_seconds / 4))
        try:
            while True:
                try:
                    await self._connect()
                    return
                except (LoginRefused, ServerTooOld) as error:
                    # Waiting callers are told at once; a password may still be mended while we go on trying slowly.
                    self._fatal = error
                    self.last_problem = str(error)
                    self._tell()
                    pause = longest
                except (KeysteadError, redis.exceptions.RedisError, NotSent, OSError) as error:
                    # Whatever it was, giving up here would leave every later caller without a connection.
                    self.last_problem = str(error)
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, longest)
        finally:
            self._healing = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
