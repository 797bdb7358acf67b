"""A declared key with its variables filled in: the only thing that can be read or written.

Operations take an executor (a connection or a pipeline) and return something to await. A write carries the declared
expiry in the same step, and nothing here can write without it or lose it by overwriting. After a lost reply only
reads are repeated: a write sent again later could undo what someone else wrote in between.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from keystead.errors import Corrupt, DeclarationError
from keystead.keys.codecs import Codec, Undecodable
from keystead.keys.executor import Command, Executor, Reply
from keystead.keys.keyspace import Declaration, OnCorrupt
from keystead.keys.layout import Layout
from keystead.keys.ttl import Moment, NoneUntilEnded, at_instant, lasting
from keystead.telemetry import counts

T = TypeVar("T")
Self = TypeVar("Self", bound="KeyReference")

counts.describe("keys_undecodable", "stored values that did not decode, by declaration")


class Reference:
    """One key or channel. ``logical`` is its documented name, ``name(layout)`` what the server calls it."""

    __slots__ = ("_chosen", "arguments", "declaration", "logical")

    def __init__(self, declaration: Declaration, arguments: Mapping[str, str], chosen: Moment | None = None) -> None:
        self.declaration = declaration
        self.arguments = arguments
        self.logical = declaration.template.fill(arguments)
        self._chosen = chosen
        if declaration.tag.variables:
            declaration.tag.of(arguments)  # refuses a variable that would break the tag, whatever the layout

    def name(self, layout: Layout) -> bytes:
        """The physical name."""
        if layout is Layout.PLAIN:
            return self.logical.encode()
        return f"{{{self.declaration.tag.of(self.arguments, layout.lane)}}}{self.logical}".encode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        return self.declaration is other.declaration and self.logical == other.logical

    def __hash__(self) -> int:
        return hash((id(self.declaration), self.logical))

    def __repr__(self) -> str:
        return f"<{self.declaration.type} {self.logical}>"

    def corrupt(self, error: Undecodable, *, where: str = "", raw: bytes | None = None) -> Corrupt:
        """The error for a stored value that does not decode; counts it. ``raw`` is what is no longer on the server."""
        counts.add("keys_undecodable", declaration=self.declaration.pattern)
        place = f" at byte {error.offset}" if error.offset is not None else ""
        return Corrupt(
            f"the value of {self.logical}{where} does not decode{place}: {error.reason} "
            f"(declared as {self.declaration.pattern})",
            key=self.logical, declaration=self.declaration.pattern, offset=error.offset, raw=raw,
        )

    def _decoded(self, codec: Codec[T], raw: bytes, *, where: str = "", removed: bool = False) -> T:
        try:
            return codec.decode(raw)
        except Undecodable as error:
            raise self.corrupt(error, where=where, raw=raw if removed else None) from None


class KeyReference(Reference):
    """What every key can do, whatever its type."""

    __slots__ = ()

    def lasting(self: Self, seconds: float) -> Self:
        """The same key, whose writes expire after ``seconds``; for keys declared ``AtMost``."""
        return self._choosing(lasting(seconds))

    def until(self: Self, unix_seconds: float) -> Self:
        """The same key, whose writes expire at an instant; for keys declared ``Until``."""
        return self._choosing(at_instant(unix_seconds))

    def delete(self, executor: Executor) -> Awaitable[bool]:
        """Remove the key; says whether it was there."""
        return executor.run(("DEL", self.name(executor.layout)), bool)

    def exists(self, executor: Executor) -> Awaitable[bool]:
        return executor.run(("EXISTS", self.name(executor.layout)), bool, repeat=True)

    def remaining_seconds(self, executor: Executor) -> Awaitable[float | None]:
        """How long until the key expires; None if it does not, or is not there."""
        return executor.run(
            ("PTTL", self.name(executor.layout)), lambda reply: reply / 1000 if reply >= 0 else None, repeat=True
        )

    def end(self, executor: Executor) -> Awaitable[bool]:
        """Let a key declared ``NoneUntilEnded`` expire after its declared time, or sooner if it already would."""
        rule = self.declaration.ttl
        if not isinstance(rule, NoneUntilEnded):
            raise DeclarationError(f"{self.declaration.pattern} is not declared NoneUntilEnded, so it cannot be ended")
        key, ending = self.name(executor.layout), rule.ending()
        return executor.run_block([ending.expire(key, "NX"), ending.expire(key, "LT")], any)

    def _choosing(self: Self, moment: Moment) -> Self:
        self.declaration.ttl.moment(moment, None)  # refuses at once what the rule does not allow
        chosen = object.__new__(type(self))
        chosen.declaration, chosen.arguments, chosen.logical = self.declaration, self.arguments, self.logical
        chosen._chosen = moment
        return chosen

    def _write(
        self, executor: Executor, command: Command, decode: Callable[[Reply], T], *,
        value: object = None, whole: bool = False, repeat: bool = False,
    ) -> Awaitable[T]:
        return self._write_all(
            executor, [command], lambda replies: decode(replies[0]), value=value, whole=whole, repeat=repeat
        )

    def _write_all(
        self, executor: Executor, commands: list[Command], decode: Callable[[list[Reply]], T], *,
        value: object = None, whole: bool = False, repeat: bool = False,
    ) -> Awaitable[T]:
        """Send writes and the expiry as one step. ``whole``: the value is written anew rather than added to."""
        rule = self.declaration.ttl
        moment = rule.moment(self._chosen, value)
        if moment is not None:
            condition = ("NX",) if rule.keeps_running and not whole else ()
            commands = [*commands, moment.expire(self.name(executor.layout), *condition)]
        if len(commands) == 1:
            return executor.run(commands[0], lambda reply: decode([reply]), repeat=repeat)
        return executor.run_block(commands, decode, repeat=repeat)

    def _use(
        self, executor: Executor, command: Command, decode: Callable[[Reply], T], *, repeat: bool = True
    ) -> Awaitable[T]:
        """Send a read or a removal, and what renews a key that lives from its last use."""
        renewal = self.declaration.ttl.renewal()
        if renewal is None:
            return executor.run(command, decode, repeat=repeat)
        block = [command, renewal.expire(self.name(executor.layout))]
        return executor.run_block(block, lambda replies: decode(replies[0]), repeat=repeat)

    def _set_options(self, value: object) -> tuple[str | bytes | int | float, ...]:
        """What must follow ``SET key value`` so that the declared expiry holds."""
        moment = self.declaration.ttl.moment(self._chosen, value)
        return self.declaration.ttl.overwrites_with if moment is None else moment.set_options()

    def _misses(self) -> bool:
        return self.declaration.dead_letter is OnCorrupt.MISS
