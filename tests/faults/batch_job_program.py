"""A process that runs batch jobs of every kind, again and again, until it is asked to stop, or killed."""

import asyncio
import sys

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.jobs.batch_job import BatchJob
from keystead.jobs.batch_job_run import RunFacts, Step
from keystead.jobs.shutdown import Shutdown
from keystead.keys import IntegerKey, Keyspace, ListKey, RecordKey
from keystead.patterns import DelayedSet, SmartLock, WorkList

SPACE = Keyspace("batches", tag="b")
DONE = ListKey(SPACE, "done:{kind}", int, purpose="what was done")
STARTED = ListKey(SPACE, "started:{kind}", int, purpose="every try")
ENDLESS = IntegerKey(SPACE, "endless", purpose="the number that takes for ever")
PLACE = "jobs-here"
ROUND = 150


def work(kind: str) -> WorkList[int]:
    return WorkList(SPACE, f"work:{kind}", int, purpose="a test", tries=1000)


def lock(kind: str) -> SmartLock:
    return SmartLock(SPACE, f"lock:{kind}", purpose="a test")


def runs(kind: str) -> RecordKey[RunFacts]:
    return RecordKey(SPACE, f"stats:batches:{kind}", RunFacts, purpose="a test")


class Each(BatchJob[int]):
    """Takes several at a time."""

    kind = "each"
    source: WorkList[int] | DelayedSet[int] = work("each")
    lock, runs = lock("each"), runs("each")
    batch_items = 20
    budget_seconds = 3600.0  # no run ends by itself while the machine is slow

    async def process(self, value: int, step: Step) -> None:
        await STARTED.at(self.kind).push_right(self.valkey, value)
        await asyncio.sleep(0.0005)
        while value % ROUND == ROUND - 1 and await ENDLESS.at().get(self.valkey) == value:
            await asyncio.sleep(0.01)
        DONE.at(self.kind).push_right(step.pipeline, value)


class Held(Each):
    kind, source, lock, runs = "held", work("held"), lock("held"), runs("held")
    holds_next = True


class Sliced(Each):
    kind, source, lock, runs = "sliced", work("sliced"), lock("sliced"), runs("sliced")
    slice_items = 7


class Due(Each):
    source = DelayedSet(SPACE, "due", int, member="a number", purpose="a test", tries=1000)
    kind, lock, runs = "due", lock("due"), runs("due")


JOBS: tuple[type[Each], ...] = (Each, Held, Sliced, Due)


async def repeat(valkey: Valkey, kind: type[Each], shutdown: Shutdown) -> None:
    job = kind(valkey, SystemClock(), stopping=shutdown.received_term_signal, hostname=PLACE)
    while not shutdown.received_term_signal():
        run = await job.run()
        if run is not None and run.done:
            print("ran", kind.kind, run.stop_reason.value, flush=True)
        await asyncio.sleep(0.01)


async def main(url: str) -> None:
    shutdown = Shutdown()
    with shutdown.on_signals():
        valkey = await connect(url)
        async with asyncio.TaskGroup() as tasks:
            for kind in JOBS:
                tasks.create_task(repeat(valkey, kind, shutdown))
        await valkey.aclose()
    print("ended", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
