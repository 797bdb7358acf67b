"""Processes for the fault tests: instances of the scheduler, each of which leads if elected, until it is killed.

``python -m tests.faults.scheduler_instance URL`` is a nursery: for each name that it reads it forks an instance and
says ``born NAME PID``. An instance that was told to stop says ``stopped NAME``. A task notes its number when it begins
and when it ends, so that whatever was run twice is seen.
"""

import asyncio
import os
import signal
import sys

from keystead.engine import connect
from keystead.jobs import JobBook
from keystead.jobs.retry import Retry
from keystead.jobs.scheduler import SchedulerSettings
from keystead.jobs.scheduler_worker import SchedulerWorker
from keystead.keys import Keyspace, ListKey
from keystead.patterns import Leader

SPACE = Keyspace("faults", tag="f")
BEGUN = ListKey(SPACE, "begun", int, purpose="numbers of tasks that were begun")
ENDED = ListKey(SPACE, "ended", int, purpose="numbers of tasks that came to their end")

# The scheduler's own leadership, with shorter times: a test is not to wait for fifteen seconds.
QUICK_LEADER = Leader(
    Keyspace("quick", tag="tasks"), "scheduler:leader", epoch="scheduler:epoch", lease_seconds=2.0, renew_seconds=0.4,
    margin_seconds=0.5, purpose="a leader that is soon replaced",
).at()
QUICK = SchedulerSettings(
    concurrency=8, take_seconds=0.2, lease_seconds=2.0, heartbeat_seconds=0.4, promote_seconds=0.05,
    reclaim_seconds=0.3, grace_seconds=0.5, stop_seconds=5.0,
    retry=Retry(tries=1000, first_seconds=0.05, most_seconds=0.2),
)


async def work(url: str, name: str) -> None:
    valkey, book = await connect(url), JobBook()

    async def note(number: int) -> None:
        await BEGUN.at().push_right(valkey, number)
        await asyncio.sleep(number % 7 * 0.01)
        if number % 11 == 0 and await BEGUN.at().length(valkey) % 2:
            raise RuntimeError("now and then it fails")
        await ENDED.at().push_right(valkey, number)

    book.register("faults.note", note)
    instance = SchedulerWorker(valkey, book, QUICK, name=name, leader=QUICK_LEADER)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, instance.stop)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(end_with_the_nursery())
        await instance.run()
        watching.cancel()
    await valkey.aclose()
    say("stopped", name)


def say(*words: object) -> None:
    """In one write: all instances share the output, and pieces of two lines would be told as one."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def end_with_the_nursery() -> None:
    nursery = os.getppid()
    while os.getppid() == nursery:
        await asyncio.sleep(1.0)
    os._exit(1)


def fork_instances(url: str) -> None:
    """A fork is there in milliseconds, a new interpreter after seconds. The dead are not waited for: their pids stay
    theirs until the nursery ends, so that nobody else is ever killed."""
    for line in sys.stdin:
        name, pid = line.strip(), os.fork()
        if pid == 0:
            asyncio.run(work(url, name))
            os._exit(0)
        say("born", name, pid)


if __name__ == "__main__":
    fork_instances(sys.argv[1])
