"""A connection whose writes are answered only when replicas have them.

What leaves together is followed by one WAIT, and its replies are held back until WAIT was answered. Meanwhile nothing
else leaves: the server would not look at it, and what gathers shares the next WAIT.
"""

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

import hiredis
import redis.exceptions

from keystead.engine.commands import BLOCKING, multi, pack, wait_for, writes
from keystead.engine.connection import Block, Connection, Reply, Told
from keystead.engine.failures import AnswerLost, NotReplicated
from keystead.keys.slots import hash_tag, key_slot
from keystead.telemetry import counts

if TYPE_CHECKING:
    from keystead.engine.client import Valkey

_MARK = b"keystead:replicated"

counts.describe("wire_not_replicated", "writes that too few replicas had in time")


class ReplicatedConnection(Connection):
    """As any connection; a write that fewer than ``replicas`` had within ``seconds`` raises ``NotReplicated``."""

    def __init__(self, *args: Any, replicas: int, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._replicas = replicas
        self._wait_seconds = seconds
        self._raw_wait = pack(wait_for(replicas, seconds))
        self._writes_unsent = False
        self._copying = False

    def send(self, raw_command: bytes) -> "asyncio.Future[Reply]":
        # Before it is queued: it may leave at once.
        self._writes_unsent = self._writes_unsent or changes(raw_command, 1)
        return super().send(raw_command)

    def _queue(self, waiter: Block | Told, raw: bytes, replies: int) -> None:
        self._writes_unsent = self._writes_unsent or changes(raw, replies)
        super()._queue(waiter, raw, replies)

    def _write_out(self) -> None:
        if self._copying or not self._unsent or self._transport is None or self.closed_because is not None:
            return
        if not self._writes_unsent:
            super()._write_out()
            return
        alone = self._unsent_replies == 1
        batch = _Batch(self, list(zip(self._unsent_waiters, self._unsent, strict=True)))
        self._unsent.append(self._raw_wait)
        self._unsent_bytes += len(self._raw_wait)
        self.in_flight_bytes += len(self._raw_wait)
        self._unsent_replies += 1
        self._unsent_waiters = [Block(batch, self._unsent_replies)]  # type: ignore[arg-type]
        self._writes_unsent, self._copying = False, True
        super()._write_out()
        self._one_by_one = alone

    def copied(self, found: Reply) -> NotReplicated | None:
        """The answer to WAIT came: the next may leave. The error to tell if it names too few replicas."""
        self._copying = False
        if self._unsent:
            self._leave_soon()
        if isinstance(found, int) and found >= self._replicas:
            return None
        counts.add("wire_not_replicated")
        return NotReplicated.by(found, self._replicas, self._wait_seconds)


class _Batch:
    """Stands where a block has its future: gives the replies of one write to those who wait for them."""

    def __init__(self, connection: ReplicatedConnection, waiters: list[tuple[Any, bytes]]) -> None:
        self._connection = connection
        self._waiters = waiters

    def done(self) -> bool:
        return not self._waiters

    def set_exception(self, error: Exception) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter, _ in waiters:
            future = waiter.future if isinstance(waiter, Block | Told) else waiter
            if not future.done():
                future.set_exception(type(error)(*error.args))

    def set_result(self, replies: list[Reply]) -> None:
        waiters, self._waiters = self._waiters, []
        short = self._connection.copied(replies[-1])
        place = 0
        for waiter, raw in waiters:
            if isinstance(waiter, Block):
                found = replies[place : place + waiter.missing]
                place += waiter.missing
                lost = short is not None and ran(found) and changes(raw, waiter.missing)
                if not waiter.future.done():
                    _settle(waiter.future, NotReplicated(*short.args) if short and lost else found)
            else:
                reply = replies[place]
                place += 1
                lost = short is not None and not isinstance(reply, Exception) and changes(raw, 1)
                if not waiter.done():
                    _settle(waiter, NotReplicated(*short.args) if short and lost else reply)


def _settle(future: "asyncio.Future[Any]", reply: Reply) -> None:
    if isinstance(reply, Exception):
        future.set_exception(reply)
    else:
        future.set_result(reply)


def ran(replies: list[Reply]) -> bool:
    """Whether any part of a block may have been applied."""
    if isinstance(replies[-1], redis.exceptions.ExecAbortError):
        # One transaction that was refused as a whole.
        return any(not isinstance(reply, Exception) and reply != b"QUEUED" for reply in replies[1:])
    return any(not isinstance(reply, Exception) for reply in replies)


def changes(raw: bytes, length: int) -> bool:
    """Whether packed commands may change what replicas must have."""
    if length == 1:
        start = raw.index(b"\n", raw.index(b"\n") + 1) + 1
        return writes(raw[start : raw.index(b"\r", start)])
    return any(writes(command[0]) for command in _commands(raw))


def _commands(raw: bytes) -> Iterator[list[bytes]]:
    reader = hiredis.Reader()
    reader.feed(raw)
    while (command := reader.gets()) is not False:
        yield command


# -- what others wrote ----------------------------------------------------------------------------------------------


async def until_replicated(valkey: "Valkey", key: bytes) -> None:
    """Return when everything that was read of the server of ``key`` is on the replicas; at once if none are asked for.

    For whoever reads and then acts elsewhere, on another shard or in SQL: what was read may be a write that nobody was
    told of yet and that a failover takes back. Raises ``NotReplicated`` when it takes too long.
    """
    if valkey.settings.replicas:
        await valkey.run_block(_silent_write(key), len, repeat=True)


def _silent_write(key: bytes) -> list[tuple[bytes | str, ...]]:
    """What leaves nothing behind, as a transaction in the slot of ``key``: WAIT behind it waits for all before it.

    WAIT by itself speaks only of what its own connection wrote.
    """
    return [("SET", mark(key), b""), ("UNLINK", mark(key))]


# -- what a blocking command took -----------------------------------------------------------------------------------


async def replicate_taken(connection: Connection, raw: bytes, replies: list[Reply]) -> None:
    """Behind blocking commands of which one took something: a write that says nothing, so that WAIT waits for both.

    The server keeps no account of a write that it made for a client it had kept waiting: WAIT alone would be answered
    at once. Does nothing on a connection that waits for no replicas.
    """
    if not isinstance(connection, ReplicatedConnection):
        return
    taken = [command for command, reply in zip(_commands(raw), replies, strict=True) if took(command, reply)]
    if not taken:
        return
    block = multi(_silent_write(key_of(taken[0])))
    done = await connection.send_block(b"".join(pack(command) for command in block), len(block))
    if isinstance(done[-1], Exception):
        raise AnswerLost(f"something was taken, and whether a replica has it is not known: {done[-1]}")


def took(command: list[bytes], reply: Reply) -> bool:
    name = command[0].decode("latin-1").upper()
    return (name in BLOCKING or name == "XREADGROUP") and reply is not None and not isinstance(reply, Exception)


def key_of(command: list[bytes]) -> bytes:
    """The first key of a blocking command."""
    name = command[0].upper()
    if name == b"XREADGROUP":
        return command[[word.upper() for word in command].index(b"STREAMS") + 1]
    return command[3 if name in (b"BLMPOP", b"BZMPOP") else 1]


@lru_cache(maxsize=1024)
def mark(key: bytes) -> bytes:
    """A key beside ``key`` that nobody ever sees: it is made and removed in one transaction."""
    wanted = key_slot(key)
    near = b"{" + hash_tag(key) + b"}" + _MARK
    if key_slot(near) == wanted:
        return near
    # A name with braces in odd places has no tag that could be written down.
    return next(name for number in count() if key_slot(name := b"{%d}%s" % (number, _MARK)) == wanted)
