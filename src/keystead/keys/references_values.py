"""Single values: text and structs, integers, flags, and the names of locks."""

from collections.abc import Awaitable
from typing import Generic, TypeVar, cast

from keystead.errors import Corrupt
from keystead.keys.codecs import INTEGER, Codec
from keystead.keys.executor import Command, Executor, Reply
from keystead.keys.references import KeyReference

T = TypeVar("T")


class StringRef(KeyReference, Generic[T]):
    """One value."""

    __slots__ = ()

    @property
    def codec(self) -> Codec[T]:
        return cast("Codec[T]", self.declaration.codec)

    def get(self, executor: Executor) -> Awaitable[T | None]:
        """The value, or None if there is none. An undecodable value is ``Corrupt``, or None where declared a miss."""
        return executor.run(_get(self, executor), self._read, repeat=True)

    def set(self, executor: Executor, value: T) -> Awaitable[None]:
        """Write the value, over whatever was there, with the declared expiry."""
        return executor.run(self._set(executor, value), _nothing)

    def set_if_absent(self, executor: Executor, value: T) -> Awaitable[bool]:
        """Write the value unless there is one; says whether it was written."""
        return executor.run((*self._set(executor, value), "NX"), _was_set)

    def get_and_delete(self, executor: Executor) -> Awaitable[T | None]:
        """Take the value away. If it does not decode, the ``Corrupt`` that is raised holds it as ``raw``."""
        return executor.run(
            ("GETDEL", self.name(executor.layout)),
            lambda reply: None if reply is None else self._decoded(self.codec, reply, removed=True),
        )

    def _set(self, executor: Executor, value: T) -> Command:
        return ("SET", self.name(executor.layout), self.codec.encode(value), *self._set_options(value))

    def _read(self, reply: Reply) -> T | None:
        if reply is None:
            return None
        try:
            return self._decoded(self.codec, reply)
        except Corrupt:
            if self._misses():
                return None
            raise


class IntegerRef(KeyReference):
    """A counter."""

    __slots__ = ()

    def get(self, executor: Executor) -> Awaitable[int | None]:
        """The number, or None if there is none."""
        return executor.run(
            _get(self, executor), lambda reply: None if reply is None else self._decoded(INTEGER, reply), repeat=True
        )

    def set(self, executor: Executor, value: int) -> Awaitable[None]:
        command = ("SET", self.name(executor.layout), INTEGER.encode(value), *self._set_options(value))
        return executor.run(command, _nothing)

    def increment(self, executor: Executor, by: int = 1) -> Awaitable[int]:
        """Add, starting from zero, and return the sum. Under ``Exactly`` the time runs from the first addition."""
        return self._write(executor, ("INCRBY", self.name(executor.layout), by), int)


class FlagRef(KeyReference):
    """Something that is either there or not; its value carries no meaning."""

    __slots__ = ()

    def raise_flag(self, executor: Executor) -> Awaitable[None]:
        """Put it up, anew if it was up already."""
        return executor.run(self._set(executor), _nothing)

    def try_raise(self, executor: Executor) -> Awaitable[bool]:
        """Put it up unless it is up already; says whether this call did it."""
        return executor.run((*self._set(executor), "NX"), _was_set)

    def lower_flag(self, executor: Executor) -> Awaitable[bool]:
        """Take it down; says whether it was up."""
        return self.delete(executor)

    def is_raised(self, executor: Executor) -> Awaitable[bool]:
        return self._use(executor, ("EXISTS", self.name(executor.layout)), bool)

    def _set(self, executor: Executor) -> Command:
        return ("SET", self.name(executor.layout), b"1", *self._set_options(None))


class LockRef(KeyReference):
    """The name of a lock. Taking and freeing it is for the lock pattern, which knows the declared kind."""

    __slots__ = ()


def _get(reference: KeyReference, executor: Executor) -> Command:
    renewal = reference.declaration.ttl.renewal()
    key = reference.name(executor.layout)
    return ("GET", key) if renewal is None else ("GETEX", key, *renewal.set_options())


def _nothing(reply: Reply) -> None:
    return None


def _was_set(reply: Reply) -> bool:
    return reply is not None
