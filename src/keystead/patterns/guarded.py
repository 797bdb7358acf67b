"""Guarded writes: what follows from a decision is remembered first, and happens in the one step that checks the guard.

``docs/patterns/guarded.md`` says when to choose it and what it cannot promise.
"""

import secrets
from collections.abc import Awaitable, Callable, Generator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import msgspec

from keystead.engine.scripts import Script, ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import FlagRef, ListRef
from keystead.keys.executor import Argument, Command, Reply
from keystead.keys.layout import Layout

if TYPE_CHECKING:
    from keystead.patterns.daily import DailyFamily
    from keystead.patterns.daily_tally import Stored, Tally

T = TypeVar("T")

ONCE = Script("keystead.patterns", "scripts/guarded/once.lua")
# More arguments than this Lua cannot pass to one command.
MOST_ARGUMENTS = 5000

# Commands that write one key, which is their first argument, by the type that the key must have.
_KINDS = {
    name: kind
    for kind, names in {
        "": "DEL EXPIRE EXPIREAT PERSIST PEXPIRE PEXPIREAT SET UNLINK",
        "string": "APPEND DECR DECRBY GETDEL INCR INCRBY INCRBYFLOAT PFADD SETBIT SETRANGE",
        "hash": "HDEL HINCRBY HINCRBYFLOAT HSET HSETNX",
        "list": "LPOP LPUSH LPUSHX LREM LSET LTRIM RPOP RPUSH RPUSHX",
        "set": "SADD SREM",
        "stream": "XADD XDEL XTRIM",
        "zset": "GEOADD ZADD ZINCRBY ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE",
    }.items()
    for name in names.split()
}
# After one of these the key may have any type.
_ANEW = frozenset(("DEL", "SET", "UNLINK"))
_ONE_ARGUMENT = frozenset(("DEL", "UNLINK"))


class Writes:
    """Writes that are remembered, in their order, instead of being sent.

    To typed access it is one more executor: operations that write one key, whatever their expiry, and counts
    (``Tally.store``, ``Tallies.add_to``) can be called on it. They have no answer, so awaiting one is a mistake. Reads,
    scripts and commands with several keys are refused. All keys need one tag.

    Nothing happens before the writes are given to an operation that guards them: ``once``, ``settle`` of a worker,
    ``remove`` or ``update`` of a pending index, or a script of a room's own. They may be given again after a refusal.
    """

    __slots__ = ("_commands", "_kinds", "_names", "_places", "_tallies", "layout")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._places: dict[bytes, int] = {}
        self._names: list[bytes] = []
        self._kinds: list[str | None] = []
        self._commands: list[tuple[Any, ...]] = []  # place of the key, word, arguments as MessagePack has them
        self._tallies: dict[DailyFamily, Tally] = {}

    def __bool__(self) -> bool:
        return bool(self._commands or self._tallies)

    def __len__(self) -> int:
        """How many commands and families of counts there are."""
        return len(self._commands) + len(self._tallies)

    # -- remembering ------------------------------------------------------------------------------------------------

    def run(self, command: Command, decode: Callable[[Reply], T], *, repeat: bool = False) -> Awaitable[T]:
        """Remember one command."""
        name = command[0]
        word = spelled = name if type(name) is str else name.decode() if isinstance(name, bytes) else str(name)
        if word not in _KINDS:
            spelled = word.upper()
        kind = _KINDS.get(spelled)
        if kind is None:
            raise DeclarationError(f"{word} cannot be a guarded write: those are commands that write one key")
        arguments = len(command) - 1
        if not arguments or (arguments > 1 and spelled in _ONE_ARGUMENT):
            raise DeclarationError(f"{word} can be a guarded write with one key only, got {arguments}")
        if arguments > MOST_ARGUMENTS:
            raise DeclarationError(f"{word}: {arguments} arguments; a guarded write has at most {MOST_ARGUMENTS}")
        key = command[1]
        place = self._place(key if type(key) is bytes else _raw(key))
        if self._kinds[place] is None:
            # What is made anew first may have had any type; otherwise the first that cares decides.
            self._kinds[place] = "" if spelled in _ANEW else kind or None
        self._commands.append((place, word, *[each if type(each) is str else _text(each) for each in command[2:]]))
        return _NO_ANSWER

    def run_block(
        self, commands: Sequence[Command], decode: Callable[[list[Reply]], T], *, repeat: bool = False
    ) -> Awaitable[T]:
        """Remember several commands."""
        for command in commands:
            self.run(command, _unread)
        return _NO_ANSWER

    def run_script(self, script: Script, rest: tuple[Argument, ...], decode: Callable[[Reply], T]) -> Awaitable[T]:
        raise DeclarationError(f"{script} cannot be a guarded write: those are commands that write one key, and counts")

    def count(self, tally: "Tally") -> "Awaitable[Stored]":
        """Remember what the tally holds now; ``Tally.store`` calls this."""
        kept = self._tallies.get(tally.family)
        if kept is None:
            kept = self._tallies[tally.family] = type(tally)(tally.family)
        kept.merge(tally)
        return _NO_ANSWER

    def add(self, other: "Writes") -> Self:
        """Let everything that ``other`` remembers follow."""
        if other.layout is not self.layout:
            raise DeclarationError("writes for two layouts of keys cannot be joined")
        places = [self._place(name) for name in other._names]
        for place, kind in zip(places, other._kinds, strict=True):
            if self._kinds[place] is None:
                self._kinds[place] = kind
        self._commands += [(places[place], *rest) for place, *rest in other._commands]
        for tally in other._tallies.values():
            self.count(tally)
        return self

    def marked(self, mark: FlagRef) -> "Writes":
        """The same writes with a mark put up behind them. These stay as they are."""
        same = Writes(self.layout)
        same._places, same._names, same._kinds = self._places.copy(), self._names.copy(), self._kinds.copy()
        same._commands, same._tallies = self._commands.copy(), self._tallies.copy()
        mark.raise_flag(same)
        return same

    def _place(self, name: bytes) -> int:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = len(self._names)
            self._names.append(name)
            self._kinds.append(None)
        return place

    # -- for whoever guards them ------------------------------------------------------------------------------------

    def packed(self, layout: Layout) -> tuple[list[bytes], bytes]:
        """The keys, and everything else in one argument: what a script with ``guarded/_writes`` takes."""
        if layout is not self.layout:
            raise DeclarationError(f"these writes are for the {self.layout.value} layout, not for {layout.value}")
        if not self:
            return [], b""
        names = list(self._names)
        tallies = []
        for tally in self._tallies.values():
            first = len(names)
            more, most_fields, amounts = tally.amounts(layout)
            names += more
            tallies.append((first, len(names) - 1, secrets.token_urlsafe(9), most_fields, amounts))
        return names, msgspec.msgpack.encode(([kind or "" for kind in self._kinds], self._commands, tallies))

    def stored(self, reply: Sequence[int]) -> None:
        """Count what ``write_all`` gave: two numbers for each family, late entries and overflow."""
        for place, tally in enumerate(self._tallies.values()):
            tally.stored(reply[2 * place], reply[2 * place + 1])


class Once(Enum):
    """What ``once`` led to: the writes happened, had happened before, or the list was full."""

    DONE = 1
    SEEN = 0
    FULL = -1


def once(
    on: ScriptRunner, mark: FlagRef, writes: Writes, *, limit: tuple[ListRef[Any], int] | None = None
) -> Awaitable[Once]:
    """Do the writes and raise the mark, unless it is up already; in one atomic step.

    ``limit`` names a list of the same tag, and with how many elements it is full: then nothing happens either. What was
    seen is said first, so a repeat of something accepted is never refused as one too many.
    """
    marked = writes.marked(mark)
    names, packed = marked.packed(on.layout)
    listed, most = ([], -1) if limit is None else ([limit[0]], limit[1])
    if limit is not None and most < 0:
        raise DeclarationError(f"a list is full with 0 elements or more, not with {most}")
    return ONCE(on, keys=[mark, *listed, *names], args=(most, packed), decode=lambda reply: Once(judged(marked, reply)))


def judged(writes: Writes, reply: Sequence[int]) -> int:
    """The verdict of a guarding script: its first number. Late counts behind it are counted."""
    if len(reply) > 1:
        writes.stored(reply[1:])
    return reply[0]


class _NoAnswer:
    """What a remembered write gives: nothing is known of it, also later."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, NoReturn]:
        raise DeclarationError("a remembered write has no answer; do not await it")
        yield


_NO_ANSWER = _NoAnswer()


def _raw(value: Argument) -> bytes:
    # As the wire spells them: Lua would round large integers.
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)).encode()


def _text(value: Argument) -> msgspec.Raw | str:
    """What MessagePack writes as text, whatever it is: the server's Lua knows no other kind, and takes it as bytes."""
    if not isinstance(value, bytes):
        return value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    length = len(value)
    if length < 32:
        return msgspec.Raw(bytes((0xA0 | length,)) + value)
    size = 1 if length < 1 << 8 else 2 if length < 1 << 16 else 4
    return msgspec.Raw(bytes(({1: 0xD9, 2: 0xDA, 4: 0xDB}[size],)) + length.to_bytes(size, "big") + value)


def _unread(reply: Reply) -> None:
    return None
