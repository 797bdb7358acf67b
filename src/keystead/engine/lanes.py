"""Lanes of a client: the same connection, under another name for the keys of laned keyspaces."""

import copy
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from keystead.engine.listener import Listener
from keystead.keys.layout import Layout

if TYPE_CHECKING:
    from keystead.engine.client import Valkey

V = TypeVar("V", bound="Valkey")


def lane_of(whole: V, number: int) -> V:
    """The client for which laned keys are those of this lane; ``whole`` itself for its own lane."""
    layout = whole.layout.in_lane(number)
    if layout is whole.layout:
        return whole
    # Everything that the copy holds is shared: wires, dedicated connections, scripts that were seen.
    lane = copy.copy(whole)
    lane._layout, lane._whole = layout, whole
    return lane


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
