"""What came after its day was rotated and can still be added exactly: a list, oldest left, until it is stored."""

from collections.abc import Awaitable, Iterable
from typing import Final, Generic, TypeVar

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import Executor, ListRef
from keystead.patterns.worklist_items import DeadLetter, Item, count_spoiled, facts_of, opened

T = TypeVar("T")

BURY: Final = Script("keystead.patterns", "scripts/daily/bury_late.lua")
BURIES: Final = ("daily/bury_late.lua",)


class LateList(Generic[T]):
    """Entries that wait for whoever rotates, and the dead letters beside them."""

    def __init__(self, late: ListRef[T], dead: ListRef[DeadLetter]) -> None:
        self._late, self._dead = late, dead

    async def oldest(self, on: ScriptRunner, most: int, now: float) -> list[Item[T]]:
        """The oldest entries. They stay until ``finish``. Takes a connection, not a pipeline.

        What does not decode becomes a dead letter of the time ``now``, and does not stop the others.
        """
        declared = self._late.declaration
        while True:
            raws: list[bytes] = await on.run(("LRANGE", self._late.name(on.layout), 0, most - 1), list, repeat=True)
            items, spoiled = opened(self._late.codec, raws)
            if spoiled:
                count_spoiled(declared, spoiled)
                pairs = [part for each in spoiled for part in (each.raw, facts_of(each.reason, now))]
                await BURY(on, keys=[self._late, self._dead], args=pairs)
            if items or not spoiled:
                return list(items)

    def finish(self, on: Executor, raws: Iterable[bytes]) -> Awaitable[int]:
        """Remove exactly these entries, after they were stored; says how many were still there."""
        name = self._late.name(on.layout)
        return on.run_block([("LREM", name, 1, raw) for raw in raws], sum)
