"""One established connection, shared by any number of tasks.

Commands issued in one turn of the event loop leave in one write, or a few if there are many. Replies come in the
order of the commands, so the oldest waiter always owns the next reply; a caller that was cancelled keeps its place in
the row and its reply is thrown away.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import hiredis
from redis._parsers.base import BaseParser

from keystead.engine.failures import AnswerLost, NotSent

Reply = Any

_NOTHING = object()
# Commands of one turn leave together, but no more than this in a row: the server then works on the first while the
# tasks of this turn still send. By `make bench ONLY=wire`, 100 tasks: script calls rose by half and GETs on asyncio's
# own loop by a quarter; GETs on uvloop did not change.
_ROW_COMMANDS = 32
_JOIN_BYTES = 256 * 1024  # below this one joined buffer beats handing the kernel a list


class Block:
    """A row of replies that belong to one caller."""

    __slots__ = ("future", "missing", "replies")

    def __init__(self, future: "asyncio.Future[list[Reply]]", missing: int) -> None:
        self.future = future
        self.missing = missing
        self.replies: list[Reply] = []


class Told:
    """A subscription that was asked for: answered by one push per channel, or by one error."""

    __slots__ = ("future", "kind", "missing")

    def __init__(self, future: "asyncio.Future[None]", kind: bytes, channels: set[bytes]) -> None:
        self.future = future
        self.kind = kind
        self.missing = channels

    def heard(self, push: list[Reply]) -> bool:
        """Take a push for an answer; true when it was the last one missing."""
        if push[0] == self.kind and push[1] in self.missing:
            self.missing.discard(push[1])
            return not self.missing
        return False


class Connection(asyncio.Protocol):
    """A socket with its row of waiters.

    ``in_flight_bytes`` counts what was accepted and not yet answered. Beyond ``limit_bytes`` a connection is
    ``congested``: callers then ask for ``room`` first and are let in one after another.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        limit_bytes: int,
        timeout_seconds: float,
        on_lost: Callable[["Connection", str], None],
        on_push: Callable[[list[Reply]], None] | None = None,
    ) -> None:
        self.in_flight_bytes = 0
        self.limit_bytes = limit_bytes
        self.commands = 0
        self.bytes_sent = 0
        self.closed_because: str | None = None
        self.facts: dict[str, str] = {}
        self._loop = loop
        self._timeout_seconds = timeout_seconds
        self._on_lost = on_lost
        self._on_push = on_push
        self._transport: asyncio.Transport | None = None
        # Futures, Blocks and Tolds; not spelled out because telling them apart is the hottest line of the engine.
        self._waiting: deque[Any] = deque()  # for the answer to something that was written
        self._unsent_waiters: list[Any] = []
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._unsent_replies = 0
        self._flush_planned = False
        self._one_by_one = False  # whether the last write held a single command
        # One entry per write: [replies still owed, bytes, when it was written].
        self._writes: deque[list[float]] = deque()
        self._room: deque[tuple[asyncio.Future[None], int]] = deque()
        self._granted_bytes = 0  # room given to callers who have not sent yet
        self._heard_at = loop.time()
        self._backlog_bytes = 0  # what the kernel had not taken, and what it had, when we last looked
        self._taken_bytes = 0
        self._watchdog: asyncio.TimerHandle | None = None
        self._reader = hiredis.Reader(
            protocolError=ConnectionResetError,
            replyError=BaseParser.parse_error,
            notEnoughData=_NOTHING,
        )
        self._lost: asyncio.Future[None] = loop.create_future()

    # -- sending ----------------------------------------------------------------------------------------------------

    def send(self, raw_command: bytes) -> "asyncio.Future[Reply]":
        """Queue one packed command; it leaves by the end of this turn. The future has its reply or its error."""
        future = self._loop.create_future()
        if self.closed_because is not None:
            future.set_exception(NotSent())
            return future
        self._unsent_waiters.append(future)
        self._unsent.append(raw_command)
        self._unsent_bytes += len(raw_command)
        self.in_flight_bytes += len(raw_command)
        self._unsent_replies += 1
        if not self._flush_planned or self._unsent_replies >= _ROW_COMMANDS:
            self._leave_soon()
        return future

    def send_block(self, raw_commands: bytes, replies: int) -> "asyncio.Future[list[Reply]]":
        """Queue several packed commands as one contiguous block; the future has all replies, errors among them."""
        future: asyncio.Future[list[Reply]] = self._loop.create_future()
        self._queue(Block(future, replies), raw_commands, replies)
        return future

    def tell(self, raw_command: bytes, kind: bytes, channels: set[bytes]) -> "asyncio.Future[None]":
        """Queue a (un)subscription, whose answer comes as pushes of ``kind``; done when every channel was named."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue(Told(future, kind, channels), raw_command, 1)
        return future

    def _queue(self, waiter: "Block | Told", raw: bytes, replies: int) -> None:
        if self.closed_because is not None:
            waiter.future.set_exception(NotSent())
            return
        self._unsent_waiters.append(waiter)
        self._unsent.append(raw)
        self._unsent_bytes += len(raw)
        self.in_flight_bytes += len(raw)
        self._unsent_replies += replies
        if not self._flush_planned or self._unsent_replies >= _ROW_COMMANDS:
            self._leave_soon()

    def _leave_soon(self) -> None:
        """Decide when what is queued leaves: with the rest of this turn, or now.

        Now, if enough is queued to keep the server busy while the tasks of this turn go on; or if one caller at a
        time is all there is, and nobody would join.
        """
        if self._unsent_replies >= _ROW_COMMANDS or (self._one_by_one and not self._writes):
            self._write_out()
        elif not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._flush)

    @property
    def congested(self) -> bool:
        return self.in_flight_bytes + self._granted_bytes > self.limit_bytes or bool(self._room)

    @property
    def waiting_commands(self) -> int:
        """Callers, also those that were cancelled, whose answer has not come."""
        return len(self._waiting) + len(self._unsent_waiters)

    async def room(self, size: int) -> None:
        """Wait, in turn, until ``size`` more bytes may be in flight; the caller sends at once when this returns.

        A lone giant is let through by itself.
        """
        if self.closed_because is not None:
            raise NotSent
        if not self._room and self._fits(size):
            return
        future: asyncio.Future[None] = self._loop.create_future()
        entry = future, size
        self._room.append(entry)
        try:
            await future
        except asyncio.CancelledError:
            if entry in self._room:
                self._room.remove(entry)
            elif not future.cancelled():
                self._granted_bytes -= size
            self._give_room()
            raise
        self._granted_bytes -= size

    def _fits(self, size: int) -> bool:
        taken = self.in_flight_bytes + self._granted_bytes
        return taken + size <= self.limit_bytes or not taken

    def _give_room(self) -> None:
        while self._room and self._fits(self._room[0][1]):
            future, size = self._room.popleft()
            if not future.done():
                self._granted_bytes += size
                future.set_result(None)

    def _flush(self) -> None:
        self._flush_planned = False
        self._write_out()

    def _write_out(self) -> None:
        unsent = self._unsent
        if not unsent or self._transport is None or self.closed_because is not None:
            return
        self._one_by_one = self._unsent_replies == 1
        self._writes.append([self._unsent_replies, self._unsent_bytes, self._loop.time()])
        self._waiting.extend(self._unsent_waiters)
        self._unsent_waiters.clear()
        self.commands += self._unsent_replies
        self.bytes_sent += self._unsent_bytes
        small = self._unsent_bytes < _JOIN_BYTES
        self._unsent = []
        self._unsent_bytes = self._unsent_replies = 0
        if len(unsent) == 1:
            self._transport.write(unsent[0])
        elif small:
            self._transport.write(b"".join(unsent))
        else:
            self._transport.writelines(unsent)

    # -- receiving --------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        waiting = self._waiting
        gets = self._reader.gets
        answered = 0
        try:
            self._reader.feed(data)
            reply = gets()
            while reply is not _NOTHING:
                if reply.__class__ is hiredis.PushNotification:
                    answered += self._push(reply)
                    reply = gets()
                    continue
                if not waiting:
                    self.abort(_unasked(reply))
                    return
                answered += 1
                waiter = waiting.popleft()
                kind = waiter.__class__
                if kind is Block:
                    self._fill(waiter, reply)
                else:
                    if kind is Told:
                        waiter = waiter.future
                    if not waiter.done():
                        if isinstance(reply, Exception):
                            waiter.set_exception(reply)
                        else:
                            waiter.set_result(reply)
                reply = gets()
        except (ConnectionResetError, TypeError) as error:
            # Bytes that are no reply, or a map whose keys Python cannot hold: nothing after it can be trusted.
            self.abort(f"the server sent something that is not an answer ({error})")
            return
        self._settle(answered)

    def _push(self, push: list[Reply]) -> int:
        """Hand a push on. Returns 1 when it completed the answer to a subscription."""
        told = self._waiting[0] if self._waiting else None
        complete = isinstance(told, Told) and told.heard(push)
        if isinstance(told, Told) and complete:
            self._waiting.popleft()
            if not told.future.done():
                told.future.set_result(None)
        if self._on_push is not None:
            self._on_push(push)
        return int(complete)

    def _fill(self, block: Block, reply: Reply) -> None:
        block.replies.append(reply)
        block.missing -= 1
        if block.missing:
            self._waiting.appendleft(block)
        elif not block.future.done():
            block.future.set_result(block.replies)

    def _settle(self, answered: int) -> None:
        """Take the writes that are wholly answered off the books."""
        while answered:
            oldest = self._writes[0]
            if oldest[0] > answered:
                oldest[0] -= answered
                break
            answered -= int(oldest[0])
            self.in_flight_bytes -= int(oldest[1])
            self._writes.popleft()
        if self._room:
            self._give_room()

    # -- life and death ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # Some loops hold small writes back until the end of the turn; below this limit they would.
        self._transport.set_write_buffer_limits(high=0)
        self._heard_at = self._loop.time()
        self._watchdog = self._loop.call_later(self._timeout_seconds / 4, self._watch)
        self._flush()

    def _watch(self) -> None:
        """Give up on a connection whose oldest command has waited too long while nothing moved in either direction."""
        if self.closed_because is not None or self._transport is None:
            return
        now = self._loop.time()
        backlog = self._transport.get_write_buffer_size()
        if self._backlog_bytes and self.bytes_sent - backlog > self._taken_bytes:
            # The kernel's buffer was full and has room again: the peer takes what we send, and so is alive.
            self._heard_at = now
        self._backlog_bytes, self._taken_bytes = backlog, self.bytes_sent - backlog
        patience = self._timeout_seconds / 4
        if self._writes:
            left = max(self._writes[0][2], self._heard_at) + self._timeout_seconds - now
            if left <= 0:
                self.abort(f"no answer for {self._timeout_seconds:g} s")
                return
            patience = min(patience, left)
        self._watchdog = self._loop.call_later(patience, self._watch)

    def eof_received(self) -> None:
        """What was still to be written has no reader any more, so nobody waits for it to leave."""
        self.abort("the server closed the connection")

    def abort(self, reason: str) -> None:
        """Close at once; everyone still waiting is told."""
        if self._transport is not None:
            self._transport.abort()
        self._end(reason)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the server closed the connection")
        if not self._lost.done():
            self._lost.set_result(None)

    async def aclose(self) -> None:
        """Close after the last write; callers still waiting get the error of a broken connection."""
        transport = self._transport
        if transport is None:
            return
        self._end("the client was closed")
        transport.close()
        try:
            async with asyncio.timeout(1):
                await asyncio.shield(self._lost)
        except TimeoutError:
            transport.abort()

    def _end(self, reason: str) -> None:
        if self.closed_because is not None:
            return
        self.closed_because = reason
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._unsent.clear()
        self._writes.clear()
        for waiters, lost in ((self._waiting, True), (self._unsent_waiters, False)):
            for waiter in waiters:
                future = waiter.future if isinstance(waiter, Block | Told) else waiter
                if not future.done():
                    future.set_exception(AnswerLost(f"the answer was lost: {reason}") if lost else NotSent())
            waiters.clear()
        room, self._room = self._room, deque()
        for entry, _ in room:
            if not entry.done():
                entry.set_exception(NotSent())
        self._on_lost(self, reason)


def _unasked(reply: Reply) -> str:
    """A server that has too many clients, or that does not want us, says so before it was asked."""
    return str(reply) if isinstance(reply, Exception) else "the server sent an answer that nobody asked for"
