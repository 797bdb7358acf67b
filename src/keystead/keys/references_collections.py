"""Lists, sets and sorted sets."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from keystead.errors import Corrupt, DeclarationError
from keystead.keys.codecs import Codec
from keystead.keys.executor import Argument, Command, Executor, Reply
from keystead.keys.references import KeyReference

T = TypeVar("T")


class ElementsRef(KeyReference, Generic[T]):
    """What lists, sets and sorted sets share: elements of one codec."""

    __slots__ = ()

    @property
    def codec(self) -> Codec[T]:
        return cast("Codec[T]", self.declaration.codec)

    def _encoded(self, values: tuple[T, ...]) -> tuple[bytes, ...]:
        if not values:
            raise DeclarationError(f"{self.declaration.pattern}: there is nothing to write")
        return tuple(self.codec.encode(value) for value in values)

    def _elements(self, reply: Iterable[bytes]) -> list[T]:
        """Decode all; an undecodable one is left out and counted where declared a miss, otherwise ``Corrupt``."""
        found: list[T] = []
        for index, raw in enumerate(reply):
            try:
                found.append(self._decoded(self.codec, raw, where=f", element {index} of those read,"))
            except Corrupt:
                if not self._misses():
                    raise
        return found

    def _taken(self, reply: Reply) -> T | None:
        return None if reply is None else self._decoded(self.codec, reply, removed=True)


class ListRef(ElementsRef[T]):
    """A list."""

    __slots__ = ()

    def push_right(self, executor: Executor, *values: T) -> Awaitable[int]:
        """Append; returns the new length."""
        return self._write(executor, ("RPUSH", self.name(executor.layout), *self._encoded(values)), int)

    def push_left(self, executor: Executor, *values: T) -> Awaitable[int]:
        """Put in front, the last value foremost; returns the new length."""
        return self._write(executor, ("LPUSH", self.name(executor.layout), *self._encoded(values)), int)

    def pop_left(self, executor: Executor) -> Awaitable[T | None]:
        """Take the first element away. If it does not decode, the ``Corrupt`` that is raised holds it as ``raw``."""
        return self._use(executor, ("LPOP", self.name(executor.layout)), self._taken, repeat=False)

    def pop_right(self, executor: Executor) -> Awaitable[T | None]:
        """Take the last element away, as ``pop_left`` does the first."""
        return self._use(executor, ("RPOP", self.name(executor.layout)), self._taken, repeat=False)

    def range(self, executor: Executor, first: int = 0, last: int = -1) -> Awaitable[list[T]]:
        """The elements from ``first`` to ``last``, both included; negative numbers count from the end."""
        return self._use(executor, ("LRANGE", self.name(executor.layout), first, last), self._elements)

    def length(self, executor: Executor) -> Awaitable[int]:
        return self._use(executor, ("LLEN", self.name(executor.layout)), int)


class SetRef(ElementsRef[T]):
    """A set."""

    __slots__ = ()

    def add(self, executor: Executor, *values: T) -> Awaitable[int]:
        """Add; says how many were new."""
        return self._write(executor, ("SADD", self.name(executor.layout), *self._encoded(values)), int)

    def remove(self, executor: Executor, *values: T) -> Awaitable[int]:
        """Remove; says how many were there."""
        return self._use(executor, ("SREM", self.name(executor.layout), *self._encoded(values)), int, repeat=False)

    def contains(self, executor: Executor, value: T) -> Awaitable[bool]:
        return self._use(executor, ("SISMEMBER", self.name(executor.layout), self.codec.encode(value)), bool)

    def contains_many(self, executor: Executor, values: Sequence[T]) -> Awaitable[list[bool]]:
        """Whether each of these is a member, in their order; at least one must be asked for."""
        command: Command = ("SMISMEMBER", self.name(executor.layout), *self._encoded(tuple(values)))
        return self._use(executor, command, lambda reply: [bool(one) for one in reply])

    def members(self, executor: Executor) -> Awaitable[list[T]]:
        """Every member, in no order; cost grows with the set."""
        return self._use(executor, ("SMEMBERS", self.name(executor.layout)), self._elements)

    def size(self, executor: Executor) -> Awaitable[int]:
        return self._use(executor, ("SCARD", self.name(executor.layout)), int)


class SortedSetRef(ElementsRef[T]):
    """A sorted set; the declaration says what member and score mean."""

    __slots__ = ()

    def add(self, executor: Executor, member: T, score: float) -> Awaitable[bool]:
        """Add the member or move it to the new score; says whether it was new."""
        command = ("ZADD", self.name(executor.layout), _score(score), self.codec.encode(member))
        return self._write(executor, command, bool)

    def add_many(self, executor: Executor, scores: Mapping[T, float]) -> Awaitable[int]:
        """Add or move several; says how many were new."""
        members = self._encoded(tuple(scores))
        pairs: list[Argument] = []
        for member, score in zip(members, scores.values(), strict=True):
            pairs += (_score(score), member)
        return self._write(executor, ("ZADD", self.name(executor.layout), *pairs), int)

    def increment(self, executor: Executor, member: T, by: float) -> Awaitable[float]:
        """Add to the member's score, starting from zero, and return the sum."""
        command = ("ZINCRBY", self.name(executor.layout), _score(by), self.codec.encode(member))
        return self._write(executor, command, float)

    def remove(self, executor: Executor, *members: T) -> Awaitable[int]:
        """Remove; says how many were there."""
        return self._use(executor, ("ZREM", self.name(executor.layout), *self._encoded(members)), int, repeat=False)

    def score(self, executor: Executor, member: T) -> Awaitable[float | None]:
        command = ("ZSCORE", self.name(executor.layout), self.codec.encode(member))
        return self._use(executor, command, lambda reply: None if reply is None else float(reply))

    def range(
        self, executor: Executor, first: int = 0, last: int = -1, *, descending: bool = False
    ) -> Awaitable[list[tuple[T, float]]]:
        """Members with scores by rank, both ends included."""
        command = ("ZRANGE", self.name(executor.layout), first, last, *(("REV",) if descending else ()), "WITHSCORES")
        return self._use(executor, command, self._scored)

    def range_by_score(
        self, executor: Executor, least: float = float("-inf"), most: float = float("inf"), *, limit: int | None = None
    ) -> Awaitable[list[tuple[T, float]]]:
        """Members with scores from ``least`` to ``most``, both included, lowest first, at most ``limit`` of them."""
        bounds = ("ZRANGE", self.name(executor.layout), _score(least), _score(most), "BYSCORE")
        limits = () if limit is None else ("LIMIT", 0, limit)
        return self._use(executor, (*bounds, *limits, "WITHSCORES"), self._scored)

    def lowest_score(self, executor: Executor) -> Awaitable[float | None]:
        """The score of the first member, whether or not that decodes; None of an empty set."""
        command = ("ZRANGE", self.name(executor.layout), 0, 0, "WITHSCORES")
        return self._use(executor, command, _first_score)

    def count(
        self, executor: Executor, least: float = float("-inf"), most: float = float("inf")
    ) -> Awaitable[int]:
        """How many members have a score from ``least`` to ``most``."""
        return self._use(executor, ("ZCOUNT", self.name(executor.layout), _score(least), _score(most)), int)

    def size(self, executor: Executor) -> Awaitable[int]:
        return self._use(executor, ("ZCARD", self.name(executor.layout)), int)

    def _scored(self, reply: Reply) -> list[tuple[T, float]]:
        pairs = scored_pairs(reply)
        found: list[tuple[T, float]] = []
        for raw, score in pairs:
            found.extend((member, score) for member in self._elements([raw]))
        return found


def scored_pairs(reply: Reply) -> list[tuple[bytes, float]]:
    """Members with scores, as either protocol sends them."""
    if reply and isinstance(reply[0], list | tuple):
        return [(member, float(score)) for member, score in reply]
    return [(member, float(score)) for member, score in zip(reply[::2], reply[1::2], strict=True)]


def _score(value: float) -> float | str:
    if value != value:
        raise DeclarationError("a score must be a number")
    return value if abs(value) != float("inf") else ("inf" if value > 0 else "-inf")


def _first_score(reply: Reply) -> float | None:
    return scored_pairs(reply)[0][1] if reply else None
