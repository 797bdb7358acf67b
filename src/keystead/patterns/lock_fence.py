"""Writes that come too late are refused: an executor that knows the number of its holder.

A lock or a leadership that numbers its holders gives each the next number of a counter. A write through ``Fenced``
runs only while the counter still stands at that number, decided by the server in the step that writes. So a holder
that was paused, cut off or simply slow cannot write once another has taken over.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Argument, Command, IntegerRef, Layout, Reply
from keystead.patterns.lock import LockLost

T = TypeVar("T")

MOST_WORDS = 7000  # of one command; a script cannot hand more over
FENCED = Script("keystead.patterns", "scripts/lock/fenced.lua")


class Fenced:
    """An executor for typed operations: ``await BALANCE.at(x).set(held.fenced(valkey), 5)``.

    Each operation, or block of operations, runs whole or not at all. Awaiting it raises ``LockLost`` when a later
    holder exists. Keys must share the tag of the counter.
    """

    def __init__(self, on: ScriptRunner, counter: IntegerRef, number: int) -> None:
        self._on = on
        self._counter = counter
        self._number = number

    @property
    def layout(self) -> Layout:
        return self._on.layout

    def run(self, command: Command, decode: Callable[[Reply], T], *, repeat: bool = False) -> Awaitable[T]:
        return self._send([command], lambda replies: decode(replies[0]))

    def run_block(
        self, commands: Sequence[Command], decode: Callable[[list[Reply]], T], *, repeat: bool = False
    ) -> Awaitable[T]:
        return self._send(commands, decode)

    def _send(self, commands: Sequence[Command], decode: Callable[[list[Reply]], T]) -> Awaitable[T]:
        keys: list[IntegerRef | bytes | str] = [self._counter]
        packed: list[Argument] = [self._number]
        for command in commands:
            if len(command) < 2 or not isinstance(command[1], bytes | str):
                raise DeclarationError(f"{command[0]!r} names no key, so it cannot be fenced")
            if len(command) > MOST_WORDS:
                raise DeclarationError(f"{command[0]!r} has {len(command)} words, and only {MOST_WORDS} can be fenced")
            keys.append(command[1])
            packed += [_raw(len(command) - 2), _raw(command[0]), *(_raw(word) for word in command[2:])]

        def read(reply: list[Reply]) -> T:
            if not reply[0]:
                raise LockLost(self._counter.logical, f"number {self._number} is past, {reply[1]} is the latest")
            return decode(reply[1:])

        return FENCED(self._on, keys=keys, args=packed, decode=read)


def _raw(word: Argument) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()
