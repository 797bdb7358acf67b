"""Lanes of a client: the same connection, under another name for the keys of laned keyspaces."""

import copy
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from keystead.engine.listener import Listener
from keystead.keys.layout import Layout

if TYPE_CHECKING:
    from keystead.engine.client import Valkey
    from keystead.keys.keyspace import Declaration


class Laned:
    """What a client knows of lanes."""

    _layout: Layout
    _whole: "Valkey | None" = None  # of a lane: the client it belongs to

    def lane(self, number: int) -> "Valkey":
        """The same connection, for which the keys of laned keyspaces are those of this lane.

        It shares everything with this client, which alone is closed. On the plain layout all lanes are one.
        """
        whole = cast("Valkey", self) if self._whole is None else self._whole
        layout = whole.layout.in_lane(number)
        if layout is whole.layout:
            return whole
        known: dict[int, Valkey] = whole.__dict__.setdefault("_lanes", {})
        lane = known.get(number)
        if lane is None:
            # Everything that the copy holds is shared: wires, dedicated connections, scripts that were seen.
            lane = known[number] = copy.copy(whole)
            lane._layout, lane._whole = layout, whole
        return lane

    def lane_for(self, text: str) -> "Valkey":
        """The lane of whatever this text stands for, a person usually; lane 0 for an empty one."""
        return self.lane(self._layout.lane_of(text))

    @property
    def lanes(self) -> "tuple[Valkey, ...]":
        """One client for each lane. On one server there is only one."""
        return tuple(self.lane(number) for number in range(self._layout.lanes))

    def lanes_of(self, declared: "Declaration") -> "tuple[Valkey, ...]":
        """One client for each place where keys of this declaration are: every lane, or this client if it has none."""
        return self.lanes if declared.laned else (cast("Valkey", self),)


class LaneHub:
    """The hub of a client, for which the channels of laned keyspaces are those of one lane."""

    def __init__(self, hub: Any, layout: Layout) -> None:
        self._hub, self._layout = hub, layout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hub, name)

    def subscribe(
        self, *channels: Any, sharded: Iterable[bytes | str] = (), **options: Any
    ) -> AbstractAsyncContextManager[Listener]:
        """As the hub's own. Lanes are of the tagged layout, so a declared channel is listened to in its shard."""
        named = [each for each in channels if isinstance(each, bytes | str)]
        declared = [each.name(self._layout) for each in channels if not isinstance(each, bytes | str)]
        listening: AbstractAsyncContextManager[Listener] = self._hub.subscribe(
            *named, sharded=(*sharded, *declared), **options
        )
        return listening
