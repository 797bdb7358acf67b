"""Lists that are too long for one answer: a page has items and a cursor that asks for the next one.

A cursor is opaque to the client and holds where to go on, not what was asked; it carries no secret and no right, so
it is not signed. What it holds is checked against the expected type when it comes back.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

import msgspec

from keystead.errors import Invalid

T = TypeVar("T")
C = TypeVar("C")

DEFAULT_ITEMS = 50
MOST_ITEMS = 500
MOST_CURSOR_CHARACTERS = 2048
# Text of a position by which a database is asked: anybody can make a cursor up, and NUL is refused there with an error.
PositionText = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]
PositionNumber = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]  # of an item in a list that is asked by number


@dataclass(frozen=True, slots=True)
class PageRequest:
    """At most ``limit`` items, from where ``cursor`` says on; from the start without one."""

    limit: int = DEFAULT_ITEMS
    cursor: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_ITEMS:
            raise Invalid(f"limit must be 1 to {MOST_ITEMS}, not {self.limit}")
        if self.cursor is not None and len(self.cursor) > MOST_CURSOR_CHARACTERS:
            raise Invalid("cursor is too long to be one of ours; leave it out to start from the beginning")

    def position(self, of: type[C]) -> C | None:
        """Where to go on; ``None`` at the start. Refuses with ``Invalid`` a cursor that was not made by this list."""
        return None if self.cursor is None else read_cursor(self.cursor, of)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in order, and the cursor of the next page; no cursor means this was the last."""

    items: tuple[T, ...]
    next_cursor: str | None = None


def make_cursor(position: object) -> str:
    """A cursor from any value msgspec can encode."""
    return urlsafe_b64encode(msgspec.json.encode(position)).rstrip(b"=").decode()


def read_cursor(cursor: str, of: type[C]) -> C:
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.json.decode(raw, type=of)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise Invalid("cursor is not one that this list gave out; leave it out to start from the beginning") from None


def cursor_after(first: int, shown: int, total: int) -> str | None:
    """The cursor of a list that is asked by number: ``shown`` items from ``first`` on are there, of ``total``."""
    return make_cursor(first + shown) if shown and first + shown < total else None


def page_of(items: list[T], request: PageRequest, position_of_last: Callable[[T], object]) -> Page[T]:
    """A page from items of which one more than ``request.limit`` was asked for, to know whether more follow.

    ``position_of_last`` is a function from the last shown item to the position after it.
    """
    if len(items) <= request.limit:
        return Page(tuple(items))
    shown = items[: request.limit]
    return Page(tuple(shown), make_cursor(position_of_last(shown[-1])))
