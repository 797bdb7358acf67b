"""What each person was told at each touch point, as far as the strategies need it, read for a batch of touches.

Two touches of one person in a batch follow one another: the second sees what the first chose.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from keystead.ids import new_uid
from keystead.messaging.touches.models import StateFields, Touch
from keystead.messaging.touches.points import TouchPoint
from keystead.messaging.touches.selection import remembers
from keystead.messaging.touches.tables import PEOPLE, STATES
from keystead.store import Database

STEP: Final = 500
Key = tuple[str, str, str]  # person, uid of the touch point, channel


@dataclass(frozen=True, slots=True)
class State:
    """What was chosen before. Version 0: nothing yet."""

    value: Any = None
    version: int = 0


class States:
    """The states of one batch."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[Key, State] = {}

    async def read(self, touches: Iterable[tuple[Touch, TouchPoint]]) -> None:
        """Read what the strategies of these touches need, some hundred people for each query."""
        wanted: dict[tuple[int, str, str], set[str]] = {}
        for touch, point in touches:
            if remembers(point.selection_strategy):
                wanted.setdefault((point.id, point.uid, touch.channel), set()).add(touch.user_sub)
        for (point_id, point_uid, channel), subs in wanted.items():
            listed = sorted(subs)
            for first in range(0, len(listed), STEP):
                await self._read(point_id, point_uid, channel, listed[first:first + STEP])

    async def _read(self, point_id: int, point_uid: str, channel: str, subs: list[str]) -> None:
        query = select(PEOPLE.c.sub, STATES.c.state, STATES.c.version).join(
            PEOPLE, PEOPLE.c.id == STATES.c.user_id
        ).where(STATES.c.touch_point_id == point_id, STATES.c.channel == channel, PEOPLE.c.sub.in_(subs))
        async with self._database.reading() as sql:
            for sub, value, version in (await sql.execute(query)).all():
                self._known[sub, point_uid, channel] = State(value, version)

    def of(self, touch: Touch, point: TouchPoint) -> Any:
        """What was chosen before, in this batch or in an earlier one; None for nothing."""
        return self._known.get((touch.user_sub, point.uid, touch.channel), State()).value

    def advance(self, touch: Touch, point: TouchPoint, value: Any, now: float) -> StateFields | None:
        """Remember a choice for the rest of the batch; the row to be written, if the strategy keeps any."""
        if value is None:
            return None
        key = touch.user_sub, point.uid, touch.channel
        before = self._known.get(key, State())
        self._known[key] = State(value, before.version + 1)
        return StateFields(new_uid("utps"), touch.user_sub, point.uid, touch.channel, value, now, before.version)
