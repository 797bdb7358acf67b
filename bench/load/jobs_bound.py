"""Measure the most that one Python process could do as a worker: no library, no retries, no other worker.

Takes 100 jobs by one script into a busy list, decodes them, starts a task for each, acknowledges all by trimming that
list; through redis-py, and a record of two fields in MessagePack. The job is the same no-op that the libraries run.
"""

import asyncio
import statistics
import time
from importlib.metadata import version

import msgspec
import redis.asyncio
import uvloop

from bench.load import protocol
from bench.load.queues import chunks, scene

TAKE = """#!lua
local items = redis.call('LPOP', KEYS[1], ARGV[1])
if not items then return false end
redis.call('RPUSH', KEYS[2], unpack(items))
return items
"""


class Record(msgspec.Struct, array_like=True):
    name: str
    args: list[float]


async def tick(sent: float) -> None:
    scene.tick(sent)


async def drain(url: str, count: int) -> tuple[float, float]:
    """Jobs per second queued, and run."""
    client = redis.asyncio.Redis.from_url(url.replace("valkey://", "redis://", 1))
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Record).decode
    jobs = {"tick": tick}
    take = client.register_script(TAKE)
    await client.flushall()
    begin = time.monotonic()
    for size in chunks(count):
        await client.rpush("bench:queue", *[encode(Record("tick", [0.0])) for _ in range(size)])
    queued = count / (time.monotonic() - begin)
    begin, done = time.monotonic(), 0
    while items := await take(keys=["bench:queue", "bench:busy"], args=[100]):
        async with asyncio.TaskGroup() as group:
            for record in [decode(raw) for raw in items]:
                group.create_task(jobs[record.name](*record.args))
        await client.ltrim("bench:busy", len(items), -1)
        done += len(items)
    rate = done / (time.monotonic() - begin)
    await client.aclose()
    return queued, rate


async def measure(url: str, count: int, passes: int) -> dict[str, float]:
    found = [await drain(url, count) for _ in range(passes)]
    return {
        "enqueue_per_second": statistics.median(pair[0] for pair in found),
        "drain_per_second": statistics.median(pair[1] for pair in found),
    }


def main() -> None:
    given = protocol.parser().parse_args()
    count, passes = (300, 1) if given.seconds < 1 else (20_000, 5)
    figures = uvloop.run(measure(given.url, count, passes))
    protocol.answer(figures, {"library": f"redis {version('redis')}", "jobs": count, "passes": passes})


if __name__ == "__main__":
    main()
