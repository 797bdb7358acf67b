"""The ways a declared key is spelled on a server."""

from binascii import crc_hqx
from typing import ClassVar, Final

from keystead.errors import DeclarationError

MOST_LANES: Final = 1024


class Layout:
    """``PLAIN`` gives the documented name byte for byte. ``TAGGED`` puts the hash tag in front, as a cluster needs.

    A tagged channel is published to its shard (SPUBLISH), a plain one to the whole server. Under the tagged layout the
    keys of a laned keyspace have a number in their tag: ``TAGGED`` spells lane 0, ``in_lane`` gives the others. How
    many ``lanes`` there are is known by every layout of them: ``tagged(4)`` is lane 0 of four, ``TAGGED`` that of one.
    Each layout is one object, so compare with ``is``; every layout but ``PLAIN`` is tagged.
    """

    __slots__ = ("_family", "lane", "lanes", "name", "value")

    PLAIN: ClassVar["Layout"]
    TAGGED: ClassVar["Layout"]

    def __init__(self, name: str, family: "dict[int, Layout]", lane: int = 0, lanes: int = 1) -> None:
        self.name, self.value, self.lane, self.lanes, self._family = name, name.lower(), lane, lanes, family
        family[lane] = self

    @staticmethod
    def tagged(lanes: int = 1) -> "Layout":
        """The tagged layout of so many lanes; it spells the first of them."""
        if not 1 <= lanes <= MOST_LANES:
            raise DeclarationError(f"there are 1 to {MOST_LANES} lanes, not {lanes!r}")
        return _TAGGED.get(lanes) or _TAGGED.setdefault(lanes, Layout("TAGGED", {}, 0, lanes))

    def in_lane(self, number: int) -> "Layout":
        """The layout that spells this lane of laned keyspaces. The plain layout knows no lanes: it stays as it is."""
        if not 0 <= number < MOST_LANES:
            raise DeclarationError(f"a lane is a number from 0 to {MOST_LANES - 1}, got {number!r}")
        if self is Layout.PLAIN:
            return self
        return self._family.get(number) or Layout(self.name, self._family, number, self.lanes)

    def lane_of(self, text: str) -> int:
        """The lane of whatever this text stands for, a person usually; nobody (an empty text) is in lane 0."""
        return crc_hqx(text.encode(errors="surrogatepass"), 0) % self.lanes if text and self.lanes > 1 else 0

    def __repr__(self) -> str:
        return f"<layout {self.value}{f', lane {self.lane}' if self.lane else ''}>"


_TAGGED: dict[int, Layout] = {}
Layout.PLAIN = Layout("PLAIN", {})
Layout.TAGGED = Layout.tagged()
