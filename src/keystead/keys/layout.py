"""The ways a declared key is spelled on a server."""

from typing import ClassVar, Final

from keystead.errors import DeclarationError

MOST_LANES: Final = 1024


class Layout:
    """``PLAIN`` gives the documented name byte for byte. ``TAGGED`` puts the hash tag in front, as a cluster needs.

    A tagged channel is published to its shard (SPUBLISH), a plain one to the whole server. Under the tagged layout the
    keys of a laned keyspace have a number in their tag: ``TAGGED`` spells lane 0, ``in_lane`` gives the others. Each
    layout is one object, so compare with ``is``; every layout but ``PLAIN`` is tagged.
    """

    __slots__ = ("_lanes", "lane", "name", "value")

    PLAIN: ClassVar["Layout"]
    TAGGED: ClassVar["Layout"]

    def __init__(self, name: str, lanes: "dict[int, Layout]", lane: int = 0) -> None:
        self.name, self.value, self.lane, self._lanes = name, name.lower(), lane, lanes
        lanes[lane] = self

    def in_lane(self, number: int) -> "Layout":
        """The layout that spells this lane of laned keyspaces. The plain layout knows no lanes: it stays as it is."""
        if not 0 <= number < MOST_LANES:
            raise DeclarationError(f"a lane is a number from 0 to {MOST_LANES - 1}, got {number!r}")
        if self is Layout.PLAIN:
            return self
        return self._lanes.get(number) or Layout(self.name, self._lanes, number)

    def __repr__(self) -> str:
        return f"<layout {self.value}{f', lane {self.lane}' if self.lane else ''}>"


Layout.PLAIN = Layout("PLAIN", {})
Layout.TAGGED = Layout("TAGGED", {})
