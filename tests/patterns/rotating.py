"""A machine that also rotates what is kept by day, dies while it does, and does it twice at once.

What is stored is kept as SQL would keep it: a row is merged together with the id of its rotation, and an id that was
applied changes nothing.
"""

import asyncio
import itertools
from collections import Counter as Multiset
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.patterns.crash import Died, Mortal
from tests.patterns.machines import ServerMachine

DAY = 19331


class RotatingMachine(ServerMachine):
    """``family`` is rotated; ``today`` moves on. Subclasses say how a day and what came late are stored."""

    family: Any

    def __init__(self, url: str, servers: list[Any]) -> None:
        super().__init__(url, servers)
        self.today = DAY
        self.applied: set[str] = set()
        self.stored: Multiset[Any] = Multiset()
        self.late_stored: Multiset[Any] = Multiset()
        self._numbers = itertools.count()

    async def store_day(self, on: Any, day: int, rotation_id: str) -> None:
        raise NotImplementedError

    async def store_late(self, on: Any) -> None:
        taken = await self.family.begin_late(on, f"late_{next(self._numbers)}")
        if taken is not None:
            late_id, amounts = taken
            if self.once(late_id):
                self.late_stored.update(amounts)
            await self.family.end_late(on, late_id)

    async def rotate(self, on: Any) -> None:
        first = await self.family.earliest(on)
        if first is None or first > self.today - self.family.held_days:
            return
        begun = await self.family.begin_rotation(on, first, f"rot_{next(self._numbers)}")
        if begun is not None:
            await self.store_day(on, first, begun)
            await self.family.end_rotation(on, first, begun)

    def once(self, applied: str) -> bool:
        new = applied not in self.applied
        self.applied.add(applied)
        return new

    def is_rotated(self, day: int) -> bool:
        state = self.run(lambda: self.family.rotation_state(self.client))
        first_held = self.today - self.family.held_days + 1
        assert state is None or state.rotated_to <= first_held, "nothing that is held leaves"
        return state is not None and day < state.rotated_to

    @rule(days=st.integers(1, 2))
    def days_pass(self, days: int) -> None:
        self.today += days

    @rule()
    def rotates(self) -> None:
        self.run(lambda: self.rotate(self.client))

    @rule()
    def two_rotate_at_once(self) -> None:
        self.run(lambda: asyncio.gather(self.rotate(self.client), self.rotate(self.client)))

    @rule(at=st.integers(1, 7), after=st.booleans())
    def rotation_dies(self, at: int, after: bool) -> None:
        self._dying(self.rotate, at, after)

    @rule()
    def late_is_stored(self) -> None:
        self.run(lambda: self.store_late(self.client))

    @rule(at=st.integers(1, 3), after=st.booleans())
    def storing_late_dies(self, at: int, after: bool) -> None:
        self._dying(self.store_late, at, after)

    def _dying(self, work: Callable[[Any], Awaitable[None]], at: int, after: bool) -> None:
        with suppress(Died):
            self.run(lambda: work(Mortal(self.client, at, after=after)))

    def everything_leaves(self) -> None:
        """Bring what is left into the table, so that it can be held against all that was counted."""
        self.today += 400

        async def go() -> None:
            first = await self.family.earliest(self.client)
            while first is not None and first <= DAY + 60:
                await self.rotate(self.client)
                first = await self.family.earliest(self.client)
            await self.store_late(self.client)
            await self.store_late(self.client)
        self.run(go)
