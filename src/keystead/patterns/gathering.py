"""Calls of one turn of the event loop, sent as one script call.

A script call costs the server several times what the commands in it cost. So of the calls that many tasks make in one
turn the first leaves at once, and the others travel as one call of a script that takes many keys and serves them one
after another; while it is crowded, the first waits for them too. For each caller it is as if its call had been alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeGuard, TypeVar
from weakref import WeakKeyDictionary, ref

from keystead.engine import Script, Valkey
from keystead.engine.cluster import ClusterValkey
from keystead.errors import ReplyLost, Unavailable
from keystead.keys import Argument, Layout, Reply, key_slot

T = TypeVar("T")

ANSWER_SECONDS = 1.0
MOST_TOGETHER = 50  # so that the server is busy with some while we hear of others


# redis-py's client is a protocol class, and asking whether something is one costs more than a future.
_CLIENTS: dict[type, bool] = {}


def is_client(on: object) -> TypeGuard[Valkey]:
    """Whether ``on`` is a connection, whose calls leave when they are awaited, and not a pipeline."""
    known = _CLIENTS.get(on.__class__)
    if known is None:
        known = _CLIENTS[on.__class__] = isinstance(on, Valkey)
    return known


async def answered(asked: Awaitable[T]) -> T:
    """The answer, or ``ReplyLost`` when none comes within a second: who waits at a door cannot wait for long."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asked
    except TimeoutError:
        raise ReplyLost(f"the server did not answer within {ANSWER_SECONDS:g} s; it may have counted the use") from None


class OrElse(Awaitable[T]):
    """The answer, or what ``instead`` says while the server is away."""

    __slots__ = ("_asked", "_instead")

    def __init__(self, asked: Awaitable[T], instead: Callable[[], T]) -> None:
        self._asked = asked
        self._instead = instead

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            return (yield from self._asked.__await__())
        except Unavailable:
            return self._instead()


Arguments = tuple[Argument, ...]
_Group = tuple[bytes, Arguments]  # what calls must have in common to travel together: their slot and their arguments


class _Batch:
    """Calls that leave together."""

    __slots__ = ("names", "waiting")

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.waiting: list[asyncio.Future[list[Reply]]] = []


class _Turn:
    """What one client is about to send. On a cluster keys of different slots cannot share a call."""

    __slots__ = ("batches", "crowded", "seen", "split")

    def __init__(self, split: bool) -> None:
        self.split = split
        self.crowded = False  # calls travelled together lately, so nobody leaves alone
        self.batches: dict[_Group, _Batch] = {}
        self.seen: set[_Group] = set()


class Gathering:
    """Gathers calls of a script that takes any number of keys and gives ``answers_each`` answers for every one."""

    def __init__(self, script: Script, *, answers_each: int) -> None:
        self.script = script
        self._answers_each = answers_each
        self._turns: WeakKeyDictionary[Valkey, _Turn] = WeakKeyDictionary()
        self._last: tuple[Callable[[], Valkey | None], _Turn] = (lambda: None, _Turn(False))
        self._running: set[asyncio.Task[None]] = set()

    def ask(self, on: Valkey, name: bytes, arguments: Arguments) -> Awaitable[list[Reply]]:
        """The script's answers for one key, to be awaited at once. A failed call fails all that travelled with it."""
        whose, turn = self._last
        if whose() is not on:
            turn = self._turn_of(on)
        group = _place(name, on.layout) if turn.split else b"", arguments
        batch = turn.batches.get(group)
        loop = asyncio.get_running_loop()
        if batch is None:
            if not turn.crowded and group not in turn.seen:
                if not turn.seen:
                    loop.call_soon(turn.seen.clear)
                turn.seen.add(group)
                return answered(self._run(on, [name], arguments))
            batch = turn.batches[group] = _Batch()
            # Not a task of any caller: one that is cancelled must not take the others' answers with it. It ends with
            # the command, which the engine bounds in time.
            task = loop.create_task(self._send(on, turn, group, batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        waiter: asyncio.Future[list[Reply]] = loop.create_future()
        batch.names.append(name)
        batch.waiting.append(waiter)
        if len(batch.names) == MOST_TOGETHER:
            del turn.batches[group]
        return waiter

    def _turn_of(self, on: Valkey) -> _Turn:
        turn = self._turns.get(on)
        if turn is None:
            turn = self._turns[on] = _Turn(isinstance(on, ClusterValkey))
        self._last = ref(on), turn
        return turn

    def _run(self, on: Valkey, names: list[bytes], arguments: Arguments) -> Awaitable[list[Reply]]:
        # The patterns made these arguments themselves; checking them against the header again would cost much.
        return on.run_script(self.script, (len(names), *names, *arguments), _as_it_is)

    async def _send(self, on: Valkey, turn: _Turn, group: _Group, batch: _Batch) -> None:
        if turn.batches.get(group) is batch:
            del turn.batches[group]
        turn.crowded = len(batch.waiting) > 1
        try:
            replies = await answered(self._run(on, batch.names, group[1]))
        except BaseException as error:
            for waiter in batch.waiting:
                if not waiter.done():
                    waiter.cancel() if isinstance(error, asyncio.CancelledError) else waiter.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        each = self._answers_each
        for place, waiter in enumerate(batch.waiting):
            if not waiter.done():
                waiter.set_result(replies[place * each : place * each + each])


def _as_it_is(reply: Reply) -> list[Reply]:
    answers: list[Reply] = reply
    return answers


def _place(name: bytes, layout: Layout) -> bytes:
    return name.partition(b"}")[0] if layout is not Layout.PLAIN else key_slot(name).to_bytes(2, "big")
