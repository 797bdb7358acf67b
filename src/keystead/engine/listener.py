"""One consumer of published messages: what it gets, and what happens when it cannot keep up."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from keystead.engine.failures import CutOff
from keystead.telemetry import counts

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

counts.describe("hub_listeners_cut_off", "listeners that were too slow and were cut off")
counts.describe("hub_messages_dropped", "messages that were waiting for a listener when it was cut off")


class Decodes(Protocol[T_co]):
    """Whatever knows what a message holds: a declared channel, or a codec."""

    def decode(self, raw: bytes, /) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Message:
    """One published message. ``pattern`` is set when it came through a channel pattern."""

    channel: bytes
    payload: bytes
    pattern: bytes | None = None

    def decode(self, by: Decodes[T]) -> T:
        """What it holds. A declared channel answers a payload that does not decode with ``Corrupt``.

        The listener is not harmed by that: the next message can be read as usual.
        """
        return by.decode(self.payload)


class Listener:
    """Messages of some channels, in order, for one consumer: ``async for message in listener``.

    ``gaps`` counts the times the subscription was interrupted. Iterating raises ``CutOff`` after falling behind, and
    the server's refusal if the subscription may not be had any more. It ends when the hub is closed.
    """

    def __init__(self, most_messages: int, most_bytes: int, on_gap: Callable[[], None] | None) -> None:
        self.gaps = 0
        self.inside = False  # whether the caller was let in; before that nothing can have been missed
        self.closed = False
        self.failure: Exception | None = None
        self._on_gap = on_gap
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._queue: deque[Message] = deque()
        self._queued_bytes = 0
        self._wake: asyncio.Future[None] | None = None

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        while not self._queue:
            if self.failure is not None:
                raise self.failure
            if self.closed:
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
        if self.closed:
            return True
        self._queue.append(message)
        self._queued_bytes += len(message.payload)
        if len(self._queue) > self._most_messages or self._queued_bytes > self._most_bytes:
            dropped = len(self._queue)
            self._queue.clear()
            self._queued_bytes = 0
            counts.add("hub_listeners_cut_off")
            counts.add("hub_messages_dropped", dropped)
            self.fail(CutOff(dropped))
            return False
        self._stir()
        return True

    @property
    def waiting(self) -> int:
        """How many messages have arrived and were not read yet."""
        return len(self._queue)

    def drop_waiting(self) -> None:
        """Forget messages that were not read yet: for whom what came before a gap is of no use."""
        self._queue.clear()
        self._queued_bytes = 0

    def note_gap(self) -> None:
        """Called by the hub: the subscription was interrupted and is back."""
        if not self.inside or self.closed:
            return
        self.gaps += 1
        if self._on_gap is not None:
            # In a turn of its own, so that a mistake in there cannot break the connection of everyone else.
            asyncio.get_running_loop().call_soon(self._on_gap)

    def fail(self, error: Exception) -> None:
        """Called by the hub: what waits is still handed out, then ``error`` is raised."""
        if not self.closed:
            self.failure = error
            self.close()

    def close(self) -> None:
        self.closed = True
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
