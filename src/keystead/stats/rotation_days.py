"""Days on their way from Valkey into SQL, one after the other, whatever is counted by them.

A day is put aside under an id, read, added to its table in one transaction that also writes the id down, and forgotten.
Whoever dies in between leaves the day aside, and the next one goes on with the same id: what was added is not added
again. Whoever comes at the same time does the same steps, and each of them happens once.

What is counted in several lanes of a cluster is put aside in each lane that has the day, and all of them are added in
one transaction, each under an id of its own. A lane that has something of the day only later is added to its row then.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, tzinfo
from typing import Final, Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead import dates
from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Corrupt
from keystead.ids import new_uid
from keystead.patterns import RotationState
from keystead.stats.applied import Applied
from keystead.stats.rotation_report import TROUBLE, Rotated
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database

LATE_STEP: Final = 1000
_SKEW_SECONDS = 5.0
_MOST_TRIES = 100  # of a day that others take away from under us


@dataclass(frozen=True, slots=True)
class Ground:
    """What every rotation stands on."""

    valkey: Valkey
    database: Database
    tables: FamilyTables
    applied: Applied
    clock: Clock
    stopping: Callable[[], bool]


class ByDays(Protocol):
    """What every kind that is rotated has in common."""

    name: str
    held_days: int

    def earliest(self, on: ScriptRunner, /) -> Awaitable[int | None]: ...

    def rotation_state(self, on: ScriptRunner, /) -> Awaitable[RotationState | None]: ...

    def begin_rotation(self, on: ScriptRunner, day: int, rotation_id: str, /) -> Awaitable[str | None]: ...

    def end_rotation(self, on: ScriptRunner, day: int, rotation_id: str, /) -> Awaitable[bool]: ...


def last_due(now: float, zone: tzinfo, rotates_at: time, held_days: int, *, monthly: bool = False) -> int:
    """The newest day (or month) that may leave: it is ``held_days`` back, and ``rotates_at`` has passed today.

    Older days may leave at any time. Whoever called us at that time may have a clock a little ahead of ours.
    """
    local, ahead = (datetime.fromtimestamp(each, zone) for each in (now, now + _SKEW_SECONDS))
    waits = local.time() < rotates_at and ahead.time() < rotates_at
    if monthly:
        return dates.date_to_unix_month(local.date()) - held_days - (local.day == 1 and waits)
    return dates.date_to_unix_date(local.date()) - held_days - waits


class DayRotation(ABC):
    """Rotates all days of one thing that are due, then adds what came late. One object for each run."""

    monthly = False

    def __init__(self, days: ByDays, due: int, ground: Ground) -> None:
        self._days, self._due, self._ground = days, due, ground
        self._lanes: tuple[Valkey, ...] = (ground.valkey,)
        self._size = 0  # of the day that was read, for whoever hears of trouble with it
        self.done = Rotated(days.name)

    async def run(self) -> Rotated:
        """Do what is due. Trouble with this one thing is told in the answer; what is out of reach raises."""
        where = ""
        try:
            while (begun := await self._next()) is not None:
                day, aside = begun
                where = f"{self.label(day)}: "
                await self._store_all(day, aside)
                ended = [await self._days.end_rotation(lane, day, rotation_id) for lane, rotation_id in aside]
                self.done.days += any(ended)
            where = "late: "
            self.done.settled = not self._ground.stopping() and await self._late()
        except TROUBLE as error:
            self.done.note(error, where)
        return self.done

    async def _next(self) -> tuple[int, list[tuple[Valkey, str]]] | None:
        """Put the next day aside: its number, and the id of its rotation in each lane that has it.

        A day that was begun is ended in any case.
        """
        for _ in range(_MOST_TRIES):
            if self._ground.stopping():
                return None
            states = [await self._days.rotation_state(lane) for lane in self._lanes]
            begun = [state.unix_date for state in states if state is not None and state.unix_date is not None]
            if not begun:
                found = [await self._days.earliest(lane) for lane in self._lanes]
                begun = [day for day in found if day is not None and day <= self._due]
                if not begun:
                    return None
            day = min(begun)
            ids = [(lane, await self._days.begin_rotation(lane, day, new_uid("rotation"))) for lane in self._lanes]
            aside = [(lane, rotation_id) for lane, rotation_id in ids if rotation_id is not None]
            if aside:
                return day, aside
        raise Corrupt(f"{self._days.name}: its earliest day cannot be put aside; see its keys earliest and rotation")

    async def _store_all(self, day: int, aside: Sequence[tuple[Valkey, str]]) -> None:
        """``_store`` for what has no lanes."""
        for _, rotation_id in aside:
            await self._store(day, rotation_id)

    async def _store(self, day: int, rotation_id: str) -> None:
        """Read the day that was put aside and add it to the table, once.

        When this ends, the day is in the table whoever put it there, and what lies aside is of no use any more.
        """
        add = await self._read(day)
        async with self._ground.database.transaction() as sql:
            if await self._new(sql, day, rotation_id, [""]):
                await add(sql)

    async def _new(self, sql: AsyncConnection, day: int, rotation_id: str, parts: Sequence[str]) -> set[str]:
        """Those of the parts of a day that are not in the table yet.

        A day that was rotated under another id before has come back: the server has lost its last changes, or an older
        copy was brought back. What is in the table stands, and the day is not added again.
        """
        first_time, name, date = self._ground.applied.first_time, self._days.name, self.label(day)
        begun = await first_time(sql, name, [f"{rotation_id}{part}" for part in parts])
        waiting = [part for part in parts if f"{rotation_id}{part}" in begun]
        found = await first_time(sql, name, [f"{date}{part}" for part in waiting])
        if len(found) < len(waiting):
            left_out = f"{self._size:,} that came with it were left out"
            self.done.problems.append(f"{date}: it was rotated before and came back; the table stands, {left_out}")
        return {part for part in waiting if f"{date}{part}" in found}

    def label(self, day: int) -> str:
        return label(day, monthly=self.monthly)

    @abstractmethod
    async def _read(self, day: int) -> Callable[[AsyncConnection], Awaitable[None]]:
        """Read what was put aside, and give back what adds it to the table."""

    @abstractmethod
    async def _late(self) -> bool:
        """Add what came late; says whether all of it was."""
