"""A process that does the work of batch jobs all the time, until it is killed."""

import asyncio
import sys

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.jobs import BatchJob, Crew, RunFacts, Step
from keystead.keys import Keyspace, ListKey, RecordKey
from keystead.patterns import DelayedSet, SmartLock, WorkList, Writes

SPACE = Keyspace("works", tag="w")
DONE = ListKey(SPACE, "done:{kind}", int, purpose="what was done")
STARTED = ListKey(SPACE, "started:{kind}", int, purpose="every try")


class Listed(BatchJob[int]):
    kind = "listed"
    source: WorkList[int] | DelayedSet[int] = WorkList(
        SPACE, "works:list", int, purpose="a test", tries=1000, alive_seconds=2
    )
    lock = SmartLock(SPACE, "works:list:lock", purpose="a test")
    runs = RecordKey(SPACE, "stats:works:list", RunFacts, purpose="a test")
    batch_items, slice_items = 20, 5

    async def process_slice(self, values: list[int], step: Step) -> None:
        await STARTED.at(self.kind).push_right(self.valkey, *values)
        await asyncio.sleep(0.002)
        for value in values:
            writes = Writes(self.valkey.layout)
            DONE.at(self.kind).push_right(writes, value)
            step.settle(value, writes)


class Due(Listed):
    kind = "due"
    source = DelayedSet(SPACE, "works:due", int, member="a number", purpose="a test", tries=1000, alive_seconds=2)
    lock = SmartLock(SPACE, "works:due:lock", purpose="a test")
    runs = RecordKey(SPACE, "stats:works:due", RunFacts, purpose="a test")


KINDS: tuple[type[Listed], ...] = (Listed, Due)


async def main(url: str) -> None:
    valkey = await connect(url)
    await Crew(*(kind(valkey, SystemClock()) for kind in KINDS)).work(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
