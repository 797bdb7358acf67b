"""Where the server ends and SQL begins, at one moment, so that no day is missed or counted twice.

Rotation may run meanwhile, or may have died at any point. So the server is asked first, in one atomic step: the days it
holds, the earliest of them, and which rotation is under way. Whatever it did not hold then is in SQL now, because a day
leaves the server only after SQL has it. The day that is under way may be in both; SQL knows the ids that it has added.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.engine import Pipeline, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.patterns.rotation import RotationState

T = TypeVar("T")

_STEP_IDS: Final = 500


class Rotated(Protocol):
    """Whatever is kept by day and rotated."""

    def earliest(self, on: ScriptRunner) -> Awaitable[int | None]: ...

    def rotation_state(self, on: ScriptRunner) -> Awaitable[RotationState | None]: ...


@dataclass(frozen=True, slots=True)
class Border(Generic[T]):
    """What the server held at one moment: ``held`` is what was read of the days from ``first`` on."""

    earliest: int | None
    state: RotationState | None
    first: int
    held: T

    @property
    def rotation_id(self) -> str | None:
        """Of the rotation under way, whose day is ``earliest``."""
        return None if self.state is None else self.state.id

    @property
    def open_from(self) -> int | None:
        """The first day that was not closed by a rotation; None if nothing was ever counted."""
        rotated_to = 0 if self.state is None else self.state.rotated_to
        return None if self.earliest is None else max(self.earliest, rotated_to)

    def sql_end(self, end: int) -> int:
        """SQL is asked for the days before this one, of a range that ends before ``end``."""
        if self.earliest is None:
            return end
        return min(end, self.earliest + (self.rotation_id is not None))


async def border_of(
    valkey: Valkey, of: Rotated, start: int, end: int, guess: int, read: Callable[[Pipeline, int, int], T]
) -> Border[T]:
    """Read the days of a range that the server holds, and where they begin, in one atomic step.

    ``read`` queues the reading of the days from its second to before its third argument; it is not called for none.
    ``guess`` is where they probably begin: if it is right there is one round trip, else a second one.
    """
    first = min(max(start, guess), end)
    while True:
        async with valkey.pipeline(transaction=True) as block:
            earliest, state = of.earliest(block), of.rotation_state(block)
            held = read(block, first, end)
            await block.execute()
        found = await earliest
        if found is None or found >= first or first == start:
            return Border(found, await state, first, held)
        first = max(start, found)


async def known_ids(sql: AsyncConnection, applied: Table, ids: Collection[str]) -> set[str]:
    """Those of the ids that SQL has added already."""
    wanted, known = list(dict.fromkeys(ids)), set[str]()
    for at in range(0, len(wanted), _STEP_IDS):
        known.update(await sql.scalars(select(applied.c.id).where(applied.c.id.in_(wanted[at : at + _STEP_IDS]))))
    return known
