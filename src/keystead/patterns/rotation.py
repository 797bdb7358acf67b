"""A day is put aside so that it can be stored elsewhere while counting goes on, and then forgotten.

Shared by everything that is kept by day. ``begin`` names the day's keys anew in one step and from then on whatever
comes for that day is late; ``end`` removes them. Between the two the room that rotates stores what it reads, with the
rotation's id in the same SQL transaction, so that a repeat after a crash changes nothing. What came late and was only
counted leaves the same way.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import time
from typing import Generic, TypeVar

import msgspec

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Executor, IntegerRef, KeyReference, MapRef, RecordRef, Reply
from keystead.keys.executor import Argument

F = TypeVar("F")

BEGIN = Script("keystead.patterns", "scripts/daily/begin_rotation.lua")
END = Script("keystead.patterns", "scripts/daily/end_rotation.lua")
BEGIN_LATE = Script("keystead.patterns", "scripts/rotation/begin_late.lua")
END_LATE = Script("keystead.patterns", "scripts/rotation/end_late.lua")
EMPTY_ASIDE = Script("keystead.patterns", "scripts/rotation/empty_aside.lua")
SCRIPTS = ("daily/begin_rotation.lua", "daily/end_rotation.lua")
LATE_SCRIPTS = ("rotation/begin_late.lua", "rotation/end_late.lua")
EMPTIES = ("rotation/empty_aside.lua",)
_EMPTIED = 300


class RotationState(msgspec.Struct, frozen=True):
    """How far days were rotated. ``unix_date`` and ``id`` are there while a rotation is under way, ``late_id`` while
    late counts are.
    """

    rotated_to: int
    unix_date: int | None = None
    id: str | None = None
    late_id: str | None = None


class Rotation:
    """The days of one family on their way out."""

    def __init__(self, earliest: IntegerRef, state: RecordRef[RotationState]) -> None:
        self._earliest = earliest
        self._state = state

    def begin(
        self, on: ScriptRunner, day: int, rotation_id: str, moved: Sequence[tuple[KeyReference, KeyReference]]
    ) -> Awaitable[str | None]:
        keys = [self._earliest, self._state, *(key for pair in moved for key in pair)]
        return BEGIN(on, keys=keys, args=[int(day), rotation_id], decode=text_or_none)

    def end(
        self, on: ScriptRunner, day: int, rotation_id: str, aside: Sequence[KeyReference]
    ) -> Awaitable[bool]:
        return END(on, keys=[self._earliest, self._state, *aside], args=[int(day), rotation_id], decode=bool)

    def state(self, on: Executor) -> Awaitable[RotationState | None]:
        return self._state.get(on)


async def empty_aside(
    on: ScriptRunner, state: RecordRef[RotationState], aside: Sequence[KeyReference], day: int, rotation_id: str
) -> None:
    """Forget the members of sets that were put aside and are stored, a few hundred in each step.

    To free a million at once, even in the background, makes every other call wait for the memory they share.
    """
    for reference in aside:
        cursor = "0"
        while True:
            arguments: list[Argument] = [int(day), rotation_id, cursor, _EMPTIED]
            cursor = await EMPTY_ASIDE(on, keys=[state, reference], args=arguments, decode=lambda reply: reply.decode())
            if cursor == "0":
                break


class LateCounts(Generic[F]):
    """Counts that came after their day was rotated: a hash that is put aside under an id, and then forgotten.

    ``read_field`` says what a field of the hash is.
    """

    def __init__(
        self, late: MapRef[int], aside: MapRef[int], state: RecordRef[RotationState], read_field: Callable[[str], F]
    ) -> None:
        self._late, self._aside, self._state, self._read_field = late, aside, state, read_field

    def all(self, on: Executor) -> Awaitable[dict[F, int]]:
        """What came late, that which was put aside included."""
        return on.run_block(
            [("HGETALL", reference.name(on.layout)) for reference in (self._late, self._aside)], self._sums, repeat=True
        )

    def begin(self, on: ScriptRunner, late_id: str) -> Awaitable[tuple[str, dict[F, int]] | None]:
        """Put what came late aside; its id, an older one if that was begun before, and the counts. None if empty."""
        keys = [self._state, self._late, self._aside]
        return BEGIN_LATE(on, keys=keys, args=[late_id], decode=self._taken)

    def end(self, on: ScriptRunner, late_id: str) -> Awaitable[bool]:
        """Forget what was put aside, once it is stored; says whether this id was under way."""
        return END_LATE(on, keys=[self._state, self._aside], args=[late_id], decode=bool)

    def _taken(self, reply: Reply) -> tuple[str, dict[F, int]] | None:
        return None if reply is None else (reply[0].decode(), self._sums(reply[1:]))

    def _sums(self, replies: Sequence[Reply]) -> dict[F, int]:
        sums: dict[F, int] = {}
        for reply in replies:
            for name, amount in self._aside._values(reply).items():
                field = self._read_field(name)
                sums[field] = sums.get(field, 0) + amount
        return sums


def text_or_none(reply: Reply) -> str | None:
    return None if reply is None else reply.decode()


def time_of_day(name: str, text: str) -> time:
    """When days are rotated, written as ``02:00``."""
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise DeclarationError(f"{name}: rotates_at is a time of day such as 02:00, not {text!r}") from None
