"""A process for the fault tests: a loop of recurring jobs whose clock runs ten times as fast, until it is killed."""

import asyncio
import sys
import time

from keystead.engine import connect
from keystead.jobs import Calendar, Missed, Recurring, RecurringList, RecurringLoop

FASTER = 10
EVERY_SECOND = Calendar("UTC", seconds=tuple(range(60)))
LIST = RecurringList(Recurring(f"faults.job{number}", EVERY_SECOND, missed=Missed.run_all(1000)) for number in range(5))


class FastClock:
    """All processes that are told the same beginning agree on the time."""

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at

    def now(self) -> float:
        return self.began_at + (time.time() - self.began_at) * FASTER


async def work(url: str, began_at: float) -> None:
    valkey = await connect(url)
    loop = RecurringLoop(valkey, LIST, clock=FastClock(began_at))
    pause = await loop.step()
    print("ready", flush=True)
    while True:
        await asyncio.sleep(pause / FASTER)
        pause = await loop.step()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], float(sys.argv[2])))
