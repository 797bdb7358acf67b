"""Publish and subscribe: one subscription connection per process and server, any number of listeners.

The hub subscribes again by itself after a loss and tells each listener that messages may have been missed. A
listener that does not keep up is cut off with a count; it never makes memory grow.
"""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import redis.exceptions

from keystead.engine.commands import pack
from keystead.engine.connection import Connection, Reply
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import AnswerLost, NotSent
from keystead.engine.listener import Listener, Message
from keystead.engine.wire import Wire
from keystead.errors import Invalid
from keystead.keys.layout import Layout
from keystead.settings import ValkeySettings
from keystead.telemetry import logger

PING_SECONDS = 1.0

_log = logger("engine")


class ChannelReference(Protocol):
    """A declared channel with its variables filled in."""

    def name(self, layout: Layout) -> bytes: ...


class GlobReference(Protocol):
    """A declared channel pattern."""

    def glob(self, layout: Layout) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Way:
    """The three ways to subscribe have different commands and the same rules."""

    subscribe: str
    unsubscribe: str
    message: bytes


CHANNELS = Way("SUBSCRIBE", "UNSUBSCRIBE", b"message")
PATTERNS = Way("PSUBSCRIBE", "PUNSUBSCRIBE", b"pmessage")
SHARDED = Way("SSUBSCRIBE", "SUNSUBSCRIBE", b"smessage")
Subscription = tuple[Way, bytes]


class Hub:
    """All subscriptions of a process to one server.

    ``on_moved`` is told of a shard channel that the server does not serve any more.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[Endpoint]],
        settings: ValkeySettings,
        *,
        layout: Layout = Layout.PLAIN,
        on_moved: Callable[[bytes], None] | None = None,
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._wire = Wire(find, settings, on_push=self._on_push, on_open=self._on_open)
        # The connection in use, or the one being set up: what is given up meanwhile must be given up there too.
        self._connection: Connection | None = None
        self._groups: dict[Way, dict[bytes, set[Listener]]] = {CHANNELS: {}, PATTERNS: {}, SHARDED: {}}
        self._asked: dict[Subscription, asyncio.Future[None]] = {}
        self._giving_up: Counter[bytes] = Counter()  # shard channels whose end we asked for ourselves
        self._by_message = {way.message: way for way in self._groups}
        self._on_moved = on_moved
        self._opened_before = False
        self._heard_at: float | None = None
        # While a new connection subscribes, what counts is when the old one was last heard: messages are being missed.
        self._settled = False
        self._heard_before: float | None = None
        self._ping: asyncio.TimerHandle | None = None

    @property
    def silent_seconds(self) -> float:
        """For how long something may have been published that has not arrived yet; a cache that trusts pushes asks.

        Counted from when the last answered ping was *sent*: what was published before then came before its answer.
        A message proves less, since it may be late itself.
        """
        heard_at = self._heard_at if self._settled else self._heard_before
        return math.inf if heard_at is None else asyncio.get_running_loop().time() - heard_at

    @property
    def listeners(self) -> int:
        return len(self.all())

    def sharded(self) -> list[bytes]:
        """The shard channels that are listened to here."""
        return list(self._groups[SHARDED])

    def all(self) -> set[Listener]:
        """Everyone who listens here."""
        return {listener for groups in self._groups.values() for group in groups.values() for listener in group}

    @asynccontextmanager
    async def subscribe(
        self,
        *channels: bytes | str | ChannelReference,
        patterns: Iterable[bytes | str | GlobReference] = (),
        sharded: Iterable[bytes | str] = (),
        most_messages: int = 1000,
        most_bytes: int = 8 * 1024 * 1024,
        on_gap: Callable[[], None] | None = None,
    ) -> AsyncIterator[Listener]:
        """Listen inside the block. Once entered, the server has confirmed: a message published after is delivered.

        A declared channel is listened to where it is published: to the whole server under the plain layout, in its
        shard under the tagged one. ``on_gap`` is called each time the subscription was interrupted and is back: what
        was published meanwhile is lost. Raises the server's refusal, and ``Unavailable`` when it is away too long.
        """
        listener = Listener(most_messages, most_bytes, on_gap)
        try:
            await self.join(listener, wanted(channels, patterns, sharded, self._layout))
            listener.inside = True
            yield listener
        finally:
            self.leave(listener)

    async def join(self, listener: Listener, names: list[Subscription], *, patience_seconds: float = 0.0) -> None:
        """Add a listener; returns when the server has confirmed every subscription."""
        patience = patience_seconds or self._settings.outage_seconds
        deadline = asyncio.get_running_loop().time() + patience
        self._add(listener, names)
        while True:
            connection = await self._wire.ready(0, deadline)
            if listener.closed:
                break
            self._add(listener, names)  # a shard channel may have been given up while we waited
            for subscription in names:
                if subscription not in self._asked:
                    self._ask(connection, subscription)
            try:
                for confirmed in [self._asked[subscription] for subscription in names]:
                    await asyncio.shield(confirmed)
                break
            except (NotSent, AnswerLost):
                continue
        if listener.failure is not None:
            raise listener.failure

    def _add(self, listener: Listener, names: list[Subscription]) -> None:
        for way, name in names:
            self._groups[way].setdefault(name, set()).add(listener)

    def leave(self, listener: Listener) -> None:
        """Take a listener away for good; channels that nobody listens to any more are given up."""
        listener.close()
        for way, groups in self._groups.items():
            for name in [name for name, group in groups.items() if listener in group]:
                self._forget(listener, way, name)

    def drop(self, listener: Listener, name: bytes) -> None:
        """Take a listener away from one shard channel; the others it has stay."""
        if listener in self._groups[SHARDED].get(name, ()):
            self._forget(listener, SHARDED, name)

    def release(self, name: bytes) -> set[Listener]:
        """Give up a shard channel and return who listened to it, so that they can join elsewhere."""
        group = set(self._groups[SHARDED].get(name, ()))
        for listener in group:
            self._forget(listener, SHARDED, name)
        return group

    def _forget(self, listener: Listener, way: Way, name: bytes) -> None:
        group = self._groups[way][name]
        group.discard(listener)
        if group:
            return
        del self._groups[way][name]
        asked = self._asked.pop((way, name), None)
        connection = self._connection
        if asked is not None and connection is not None and connection.closed_because is None:
            if way is SHARDED:
                self._giving_up[name] += 1
            raw = pack((way.unsubscribe, name))
            told = connection.tell(raw, way.unsubscribe.lower().encode(), {name})
            told.add_done_callback(lambda done: self._given_up(way, name, done))

    def _given_up(self, way: Way, name: bytes, done: "asyncio.Future[None]") -> None:
        if not done.cancelled() and done.exception() is not None and way is SHARDED:
            self._giving_up[name] -= 1  # refused, so no push will come

    def _ask(self, connection: Connection, subscription: Subscription) -> None:
        way, name = subscription
        future = connection.tell(pack((way.subscribe, name)), way.subscribe.lower().encode(), {name})
        # Keep the event loop from reporting an error that whoever needs it will see.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._asked[subscription] = future

    # -- the connection ---------------------------------------------------------------------------------------------

    async def _on_open(self, connection: Connection) -> None:
        """Subscribe to everything that is listened to, before the connection counts as ready."""
        self._connection = connection
        if self._settled:
            self._settled, self._heard_before = False, self._heard_at
        self._heard_at = asyncio.get_running_loop().time()
        self._asked.clear()
        self._giving_up.clear()
        # Each name by itself, all in one write: a refusal then speaks of that name alone.
        for way, groups in self._groups.items():
            for name in groups:
                self._ask(connection, (way, name))
        for subscription, future in list(self._asked.items()):
            try:
                await asyncio.shield(future)
            except (AnswerLost, NotSent):
                return
            except redis.exceptions.ResponseError as error:
                if self._asked.get(subscription) is future:
                    self._refused(subscription, error)
        if self._opened_before:
            for listener in self.all():
                listener.note_gap()
        self._opened_before = self._settled = True
        self._plan_ping(connection)

    def _refused(self, subscription: Subscription, error: redis.exceptions.ResponseError) -> None:
        """What was had before, or is being asked for just now, is not to be had on this connection."""
        way, name = subscription
        del self._asked[subscription]
        if way is SHARDED and self._on_moved is not None and is_elsewhere(error):
            self._on_moved(name)
            return
        _log.warning("subscription refused", channel=name.decode(errors="backslashreplace"), reason=str(error))
        for listener in list(self._groups[way].get(name, ())):
            listener.fail(error)
            self.leave(listener)

    def _plan_ping(self, connection: Connection) -> None:
        if self._ping is not None:
            self._ping.cancel()
        self._ping = asyncio.get_running_loop().call_later(PING_SECONDS, self._send_ping, connection)

    def _send_ping(self, connection: Connection) -> None:
        if connection.closed_because is None:
            sent_at = asyncio.get_running_loop().time()
            connection.send(pack(("PING",))).add_done_callback(lambda pong: self._on_pong(pong, sent_at))
            self._plan_ping(connection)

    def _on_pong(self, pong: "asyncio.Future[Reply]", sent_at: float) -> None:
        if not pong.cancelled() and pong.exception() is None:
            self._heard_at = sent_at

    def _on_push(self, push: list[Reply]) -> None:
        way = self._by_message.get(push[0])
        if way is None:
            if push[0] == b"sunsubscribe":
                self._on_shard_end(push[1])
            return
        if way is PATTERNS:
            name, message = push[1], Message(push[2], push[3], push[1])
        else:
            name, message = push[1], Message(push[1], push[2])
        for listener in list(self._groups[way].get(name, ())):
            if not listener.deliver(message):
                self.leave(listener)

    def _on_shard_end(self, name: bytes) -> None:
        if self._giving_up[name] > 0:
            self._giving_up[name] -= 1
            return
        # Nobody here asked for it: the server says that the slot of this channel has moved away.
        if self._asked.pop((SHARDED, name), None) is not None and self._on_moved is not None:
            self._on_moved(name)

    async def aclose(self) -> None:
        """Close the connection; every listener's iteration ends."""
        if self._ping is not None:
            self._ping.cancel()
        for listener in self.all():
            listener.close()
        await self._wire.aclose()


def is_elsewhere(error: Exception) -> bool:
    """Whether a refusal means that another node has the slot, or will in a moment."""
    return isinstance(
        error,
        redis.exceptions.AskError | redis.exceptions.TryAgainError | redis.exceptions.ClusterDownError,
    )


def wanted(
    channels: Iterable[bytes | str | ChannelReference],
    patterns: Iterable[bytes | str | GlobReference],
    sharded: Iterable[bytes | str],
    layout: Layout,
) -> list[Subscription]:
    """What a listener asks for, as pairs of way and name."""
    declared = CHANNELS if layout is Layout.PLAIN else SHARDED
    found = [
        (CHANNELS, _raw(each)) if isinstance(each, bytes | str) else (declared, each.name(layout)) for each in channels
    ]
    found += [(PATTERNS, _raw(each) if isinstance(each, bytes | str) else each.glob(layout)) for each in patterns]
    found += [(SHARDED, _raw(each)) for each in sharded]
    if not found:
        raise Invalid("name at least one channel to listen to")
    return list(dict.fromkeys(found))


def _raw(name: bytes | str) -> bytes:
    return name.encode() if isinstance(name, str) else name
