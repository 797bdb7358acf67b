"""A process for the fault tests that uses limits from many tasks and says each time it was allowed, until killed."""

import asyncio
import sys
import time

from keystead.engine import connect
from keystead.keys import Keyspace
from keystead.patterns.limits import check_all
from keystead.patterns.limits_logs import SlidingLog
from keystead.patterns.limits_windows import FixedWindow

FAULTS = Keyspace("faults", tag="f")
MOST = 400
WINDOW = FixedWindow(FAULTS, "window", most=MOST, window_seconds=3600, counts_refused=False, purpose="a test")
LOG = SlidingLog(FAULTS, "log", windows=((MOST, 3600),), purpose="a test")
BOTH = [FixedWindow(FAULTS, f"both:{name}", most=MOST, window_seconds=3600, purpose="a test") for name in "ab"]


async def main(url: str) -> None:
    valkey = await connect(url)

    async def task() -> None:
        while True:
            told = {
                "window": await WINDOW.at().use(valkey),
                "log": await LOG.at().use(valkey, now=time.time()),
                "both": await check_all(valkey, [limit.at() for limit in BOTH], now=time.time()),
            }
            for word, decision in told.items():
                if decision.allowed and not decision.degraded:
                    print(word, flush=True)
            await asyncio.sleep(0.005)

    print("ready", flush=True)
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(task())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
