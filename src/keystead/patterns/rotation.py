"""A day is put aside so that it can be stored elsewhere while counting goes on, and then forgotten.

Shared by everything that is kept by day. ``begin`` names the day's keys anew in one step and from then on whatever
comes for that day is late; ``end`` removes them. Between the two the room that rotates stores what it reads, with the
rotation's id in the same SQL transaction, so that a repeat after a crash changes nothing.
"""

from collections.abc import Awaitable, Sequence

import msgspec

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import Executor, IntegerRef, KeyReference, RecordRef, Reply

BEGIN = Script("keystead.patterns", "scripts/daily/begin_rotation.lua")
END = Script("keystead.patterns", "scripts/daily/end_rotation.lua")
SCRIPTS = ("daily/begin_rotation.lua", "daily/end_rotation.lua")


class RotationState(msgspec.Struct, frozen=True):
    """How far days were rotated. ``unix_date`` and ``id`` are there while a rotation is under way."""

    rotated_to: int
    unix_date: int | None = None
    id: str | None = None


class Rotation:
    """The days of one family on their way out."""

    def __init__(self, earliest: IntegerRef, state: RecordRef[RotationState]) -> None:
        self._earliest = earliest
        self._state = state

    def begin(
        self, on: ScriptRunner, day: int, rotation_id: str, moved: Sequence[tuple[KeyReference, KeyReference]]
    ) -> Awaitable[str | None]:
        keys = [self._earliest, self._state, *(key for pair in moved for key in pair)]
        return BEGIN(on, keys=keys, args=[int(day), rotation_id], decode=_text)

    def end(
        self, on: ScriptRunner, day: int, rotation_id: str, aside: Sequence[KeyReference]
    ) -> Awaitable[bool]:
        return END(on, keys=[self._earliest, self._state, *aside], args=[int(day), rotation_id], decode=bool)

    def state(self, on: Executor) -> Awaitable[RotationState | None]:
        return self._state.get(on)


def _text(reply: Reply) -> str | None:
    return None if reply is None else reply.decode()
