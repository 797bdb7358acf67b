"""Publish and subscribe: one subscription connection per process and server, any number of listeners.

The hub subscribes again by itself after a loss and tells each listener that messages may have been missed. A
listener that does not keep up is cut off with a count; it never makes memory grow.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import redis.exceptions

from keystead.engine.commands import pack
from keystead.engine.connection import Connection, Reply
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import AnswerLost, CutOff, NotSent
from keystead.engine.wire import Wire
from keystead.settings import ValkeySettings
from keystead.telemetry import counts, logger

PING_SECONDS = 1.0

_log = logger("engine")

counts.describe("hub_listeners_cut_off", "listeners that were too slow and were cut off")
counts.describe("hub_messages_dropped", "messages that were waiting for a listener when it was cut off")


@dataclass(frozen=True, slots=True)
class Message:
    """One published message. ``pattern`` is set when it came through a channel pattern."""

    channel: bytes
    payload: bytes
    pattern: bytes | None = None


class Listener:
    """Messages of some channels, in order, for one consumer: ``async for message in listener``.

    ``gaps`` counts the times the subscription was interrupted. Iterating raises ``CutOff`` after falling behind.
    """

    def __init__(self, most_messages: int, most_bytes: int, on_gap: Callable[[], None] | None) -> None:
        self.gaps = 0
        self._on_gap = on_gap
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._queue: deque[Message] = deque()
        self._queued_bytes = 0
        self._cut_off: CutOff | None = None
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        while not self._queue:
            if self._cut_off is not None:
                raise self._cut_off
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        message = self._queue.popleft()
        self._queued_bytes -= len(message.payload)
        return message

    async def get(self, timeout_seconds: float) -> Message | None:
        """The next message, or ``None`` when none came in time."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return await anext(self)
        except (TimeoutError, StopAsyncIteration):
            return None

    def deliver(self, message: Message) -> bool:
        """Called by the hub. False when the listener was full and is cut off now."""
        self._queue.append(message)
        self._queued_bytes += len(message.payload)
        if len(self._queue) > self._most_messages or self._queued_bytes > self._most_bytes:
            dropped = len(self._queue)
            self._queue.clear()
            self._cut_off = CutOff(dropped)
            counts.add("hub_listeners_cut_off")
            counts.add("hub_messages_dropped", dropped)
        self._stir()
        return self._cut_off is None

    def note_gap(self) -> None:
        self.gaps += 1
        if self._on_gap is not None:
            self._on_gap()

    def close(self) -> None:
        self._closed = True
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


@dataclass(frozen=True, slots=True)
class Way:
    """The three ways to subscribe have different commands and the same rules."""

    subscribe: str
    unsubscribe: str
    message: bytes


CHANNELS = Way("SUBSCRIBE", "UNSUBSCRIBE", b"message")
PATTERNS = Way("PSUBSCRIBE", "PUNSUBSCRIBE", b"pmessage")
SHARDED = Way("SSUBSCRIBE", "SUNSUBSCRIBE", b"smessage")


class Hub:
    """All subscriptions of a process to one server."""

    def __init__(
        self,
        find: Callable[[], Awaitable[Endpoint]],
        settings: ValkeySettings,
        *,
        on_moved: Callable[[bytes], None] | None = None,
    ) -> None:
        self._settings = settings
        self._wire = Wire(find, settings, on_push=self._on_push, on_open=self._on_open)
        self._listeners: dict[Way, dict[bytes, set[Listener]]] = {CHANNELS: {}, PATTERNS: {}, SHARDED: {}}
        self._asked: dict[tuple[Way, bytes], asyncio.Future[None]] = {}
        self._by_message = {way.message: way for way in self._listeners}
        self._on_moved = on_moved
        self._opened_before = False
        self._heard_at = 0.0
        self._ping: asyncio.TimerHandle | None = None

    @property
    def silent_seconds(self) -> float:
        """How long ago the server was last heard on this connection. A cache that trusts pushes watches this."""
        return asyncio.get_running_loop().time() - self._heard_at

    @property
    def listeners(self) -> int:
        return len(self._all())

    def sharded(self) -> dict[bytes, set[Listener]]:
        """The shard channels that are listened to here, and by whom."""
        return {name: set(group) for name, group in self._listeners[SHARDED].items()}

    def _all(self) -> set[Listener]:
        return {listener for table in self._listeners.values() for group in table.values() for listener in group}

    @asynccontextmanager
    async def subscribe(
        self,
        *channels: bytes | str,
        patterns: Iterable[bytes | str] = (),
        sharded: Iterable[bytes | str] = (),
        most_messages: int = 1000,
        most_bytes: int = 8 * 1024 * 1024,
        on_gap: Callable[[], None] | None = None,
    ) -> AsyncIterator[Listener]:
        """Listen inside the block. Once entered, the server has confirmed: a message published after is delivered.

        ``on_gap`` is called each time the subscription was interrupted and is back: what was published meanwhile is
        lost.
        """
        listener = Listener(most_messages, most_bytes, on_gap)
        try:
            await self.join(listener, wanted(channels, patterns, sharded))
            yield listener
        finally:
            self.leave(listener)

    async def join(self, listener: Listener, wanted: list[tuple[Way, bytes]]) -> None:
        """Add a listener; returns when the server has confirmed every subscription."""
        deadline = asyncio.get_running_loop().time() + self._settings.outage_seconds
        for way, name in wanted:
            self._listeners[way].setdefault(name, set()).add(listener)
        while True:
            connection = await self._wire.ready(0, deadline)
            for way, name in wanted:
                if (way, name) not in self._asked:
                    self._ask(connection, way, [name])
            try:
                for subscription in wanted:
                    if subscription in self._asked:
                        await asyncio.shield(self._asked[subscription])
                return
            except (NotSent, AnswerLost):
                continue

    def leave(self, listener: Listener) -> None:
        """Take a listener away; channels that nobody listens to any more are given up."""
        listener.close()
        self.forget(listener, None)

    def forget(self, listener: Listener, only: bytes | None) -> None:
        """Stop delivering to a listener, from one channel or from all."""
        for way, table in self._listeners.items():
            for name in [name for name, group in table.items() if listener in group and only in (None, name)]:
                group = table[name]
                group.discard(listener)
                if not group:
                    del table[name]
                    self._asked.pop((way, name), None)
                    connection = self._wire.connection
                    if connection is not None:
                        raw = pack((way.unsubscribe, name))
                        _quiet(connection.tell(raw, way.unsubscribe.lower().encode(), {name}))

    def _ask(self, connection: Connection, way: Way, names: list[bytes]) -> None:
        future = connection.tell(pack((way.subscribe, *names)), way.subscribe.lower().encode(), set(names))
        _quiet(future)
        for name in names:
            self._asked[way, name] = future

    async def _on_open(self, connection: Connection) -> None:
        """Subscribe to everything that is listened to, before the connection counts as ready."""
        self._heard_at = asyncio.get_running_loop().time()
        self._asked.clear()
        for way, table in self._listeners.items():
            # A shard's channels may have moved apart meanwhile, so each is asked for by itself.
            groups = [[name] for name in table] if way is SHARDED else [list(table)] if table else []
            for names in groups:
                self._ask(connection, way, names)
        for (way, name), future in list(self._asked.items()):
            try:
                await asyncio.shield(future)
            except (AnswerLost, NotSent):
                return
            except redis.exceptions.ResponseError as error:
                self._asked.pop((way, name), None)
                _log.warning("subscription refused", channel=name.decode(errors="replace"), reason=str(error))
                if way is SHARDED and self._on_moved is not None:
                    self._on_moved(name)
        if self._opened_before:
            for listener in self._all():
                listener.note_gap()
        self._opened_before = True
        self._plan_ping(connection)

    def _plan_ping(self, connection: Connection) -> None:
        if self._ping is not None:
            self._ping.cancel()
        self._ping = asyncio.get_running_loop().call_later(PING_SECONDS, self._send_ping, connection)

    def _send_ping(self, connection: Connection) -> None:
        if connection.closed_because is None:
            pong = connection.send(pack(("PING",)))
            pong.add_done_callback(self._on_pong)
            self._plan_ping(connection)

    def _on_pong(self, pong: "asyncio.Future[Reply]") -> None:
        if not pong.cancelled() and pong.exception() is None:
            self._heard_at = asyncio.get_running_loop().time()

    def _on_push(self, push: list[Reply]) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        way = self._by_message.get(push[0])
        if way is None:
            if push[0] == b"sunsubscribe" and push[1] in self._listeners[SHARDED] and self._on_moved is not None:
                # Nobody here asked for it: the server says that the slot of this channel has moved away.
                self._asked.pop((SHARDED, push[1]), None)
                self._on_moved(push[1])
            return
        if way is PATTERNS:
            name, message = push[1], Message(push[2], push[3], push[1])
        else:
            name, message = push[1], Message(push[1], push[2])
        group = self._listeners[way].get(name)
        if group is None:
            return
        for listener in list(group):
            if not listener.deliver(message):
                self.leave(listener)

    async def aclose(self) -> None:
        if self._ping is not None:
            self._ping.cancel()
        for listener in self._all():
            listener.close()
        await self._wire.aclose()


def wanted(
    channels: Iterable[bytes | str], patterns: Iterable[bytes | str], sharded: Iterable[bytes | str]
) -> list[tuple[Way, bytes]]:
    """What a listener asks for, as pairs of way and name."""
    return [
        (way, name.encode() if isinstance(name, str) else name)
        for way, names in ((CHANNELS, channels), (PATTERNS, patterns), (SHARDED, sharded))
        for name in names
    ]


def _quiet(future: "asyncio.Future[None]") -> None:
    """Keep the event loop from reporting an error that whoever needs it will see."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
