"""Holding back while a server is busy with others: what everybody does who goes over a whole server."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from keystead.engine import ErrorReply, Valkey
from keystead.errors import Unavailable
from keystead.survey.stride import GIVE_UP_SECONDS, LATE_SECONDS, Stride

FIRST_PINGS = 5
_SHORTEST_SECONDS = 0.001  # a shorter sleep costs more than it saves, and is made up for later


async def ping(node: Valkey, stride: Stride) -> None:
    """Tell the stride how long the server lets a PING wait."""
    began = time.monotonic()
    with contextlib.suppress(ErrorReply):  # a user without the right; the refusal takes as long
        await node.call(("PING",), repeat=True)
    now = time.monotonic()
    stride.pinged(now - began, now)


async def get_to_know(node: Valkey, stride: Stride) -> None:
    """Ask a few times in a row: the quickest answer is what the later ones are measured by."""
    for _ in range(FIRST_PINGS):
        await ping(node, stride)


async def hold_back(node: Valkey, stride: Stride) -> None:
    """Rest for as long as the stride wants; asks the server how it is, now and then."""
    if stride.wants_ping(time.monotonic()):
        await ping(node, stride)
    rest = stride.rest_seconds(time.monotonic())
    if rest > _SHORTEST_SECONDS:
        await asyncio.sleep(rest)


class Sparing:
    """For work on several servers at once: ``hold_back`` between two steps rests while any of them answers late.

    Raises ``Unavailable`` once one has answered late for ``give_up_seconds``: whoever works there should stop.
    """

    def __init__(
        self, nodes: Sequence[Valkey], *, late_seconds: float = LATE_SECONDS, give_up_seconds: float = GIVE_UP_SECONDS
    ) -> None:
        self._strides = [(node, Stride(late_seconds=late_seconds, give_up_seconds=give_up_seconds)) for node in nodes]
        self._known = False

    async def hold_back(self) -> None:
        for node, stride in self._strides:
            if not self._known:
                await get_to_know(node, stride)
            await hold_back(node, stride)
            if stride.gave_up:
                raise Unavailable("the server answers slowly, so this was ended to spare it; run it again later")
        self._known = True
