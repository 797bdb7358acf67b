"""``python -m bench.load.queues LIBRARY MODE``: a process that queues jobs, or a worker."""

import argparse
import asyncio
import json
import time

from bench.load import queues


async def produce(queue: queues.Queue, mode: str, count: int, per_second: float) -> float:
    """Seconds that the queueing took, connecting not counted."""
    await queue.start()
    begin = time.monotonic()
    if mode == "bulk":
        await queue.bulk(count)
    elif mode == "paced":
        for number in range(count):
            await asyncio.sleep(max(0.0, begin + number / per_second - time.monotonic()))
            await queue.one(time.monotonic())
    else:
        await queue.nap()
    took = time.monotonic() - begin
    await queue.stop()
    return took


def main() -> None:
    flags = argparse.ArgumentParser(prog="python -m bench.load.queues", allow_abbrev=False)
    flags.add_argument("library")
    flags.add_argument("mode", choices=("bulk", "paced", "nap", "work"))
    flags.add_argument("--count", type=int, default=1)
    flags.add_argument("--per-second", type=float, default=100.0)
    given = flags.parse_args()
    queue = queues.load(given.library)
    if given.mode == "work":
        queue.work()
        return
    import uvloop

    took = uvloop.run(produce(queue, given.mode, given.count, given.per_second))
    print(json.dumps({"seconds": took, "distribution": queue.distribution}), flush=True)


if __name__ == "__main__":
    main()
