"""What travels through a work list: items as they were taken, and the letters of those that died."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from keystead.keys import Codec, Declaration, Undecodable
from keystead.telemetry import counts

T = TypeVar("T")


class Item(msgspec.Struct, Generic[T], frozen=True):
    """One element: its value, and the bytes it was stored as, by which it is finished."""

    value: T
    raw: bytes


class Spoiled(msgspec.Struct, frozen=True):
    """An element that does not decode, and why."""

    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class TakenItems(Generic[T]):
    """What one take gave, oldest first. ``recovered``: these lay in purgatory already, from before.

    ``spoiled`` did not decode. Taken over a connection they already are dead letters; taken in a pipeline they still
    lie in purgatory. ``lost``: items that were to be finished in the same step, and another worker has adopted.
    The last three are of ``take_from``: taking is closed; items on their last try wait for a worker that holds nothing;
    this is such an item, and nothing should be taken beside it.
    """

    items: list[Item[T]]
    recovered: bool = False
    spoiled: tuple[Spoiled, ...] = ()
    lost: tuple[Item[T], ...] = ()
    closed: bool = False
    suspects_wait: bool = False
    alone: bool = False

    def __iter__(self) -> Iterator[Item[T]]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def values(self) -> list[T]:
        return [item.value for item in self.items]


def opened(codec: Codec[T], raws: Iterable[bytes]) -> tuple[list[Item[T]], tuple[Spoiled, ...]]:
    """Decode elements; those that do not are told apart instead of stopping the others."""
    decode: Callable[[bytes], T] = codec.decode
    try:
        return [Item(decode(raw), raw) for raw in raws], ()
    except Undecodable:
        return _with_spoiled(decode, raws)


def count_spoiled(declaration: Declaration, spoiled: tuple[Spoiled, ...]) -> None:
    """Count elements that did not decode, as every other read of a declared key does."""
    if spoiled:
        counts.add("keys_undecodable", len(spoiled), declaration=declaration.pattern)


def _with_spoiled(decode: Callable[[bytes], T], raws: Iterable[bytes]) -> tuple[list[Item[T]], tuple[Spoiled, ...]]:
    items: list[Item[T]] = []
    spoiled: list[Spoiled] = []
    for raw in raws:
        try:
            items.append(Item(decode(raw), raw))
        except Undecodable as error:
            spoiled.append(Spoiled(raw, f"does not decode: {error.reason}"))
    return items, tuple(spoiled)


class DeadLetter(msgspec.Struct, frozen=True):
    """An item that was given up: its bytes, why, when, and after how many tries."""

    raw: bytes
    error: str
    dead_at: float
    attempts: int = 0


class _Facts(msgspec.Struct):
    attempts: int
    error: str
    dead_at: float


class DeadLetterCodec:
    """One line of JSON facts, then the item byte for byte, so that it can be read at night and replayed unchanged."""

    name = "a line of JSON (attempts, error, dead_at), then the item"

    def encode(self, value: DeadLetter, /) -> bytes:
        return b'{"attempts":%d,' % value.attempts + facts_of(value.error, value.dead_at).encode() + b"\n" + value.raw

    def decode(self, raw: bytes, /) -> DeadLetter:
        line, end, item = raw.partition(b"\n")
        if not end:
            raise Undecodable("a dead letter begins with a line of facts", 0)
        try:
            facts = msgspec.json.decode(line, type=_Facts)
        except msgspec.DecodeError:
            raise Undecodable("the first line of a dead letter is not its facts", 0) from None
        return DeadLetter(item, facts.error, facts.dead_at, facts.attempts)


def facts_of(error: str, dead_at: float) -> str:
    """What scripts write into a dead letter beside the number of tries: JSON without its opening brace."""
    return msgspec.json.encode({"error": error, "dead_at": dead_at}).decode()[1:]
