"""Measure a work list: push a batch, take it, finish it, over and over; one task or several workers side by side.

``keystead``: our pattern, with decoded messages or raw bytes. ``by_hand``: the same three moves as a careful user
would write them with redis-py: RPUSH, a script that moves into a purgatory list, LTRIM.
"""

import asyncio
import time
from importlib.metadata import version
from typing import Any

from bench.load import protocol

BODY = "Your table is ready at eight. Reply STOP to end these messages."
TAKE = """#!lua
local items = redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
if #items > 0 then
  redis.call('LTRIM', KEYS[1], #items, -1)
  redis.call('RPUSH', KEYS[2], unpack(items))
end
return items
"""


async def keystead(url: str, shape: str, batch: int, workers: int, seconds: float, warm_up: float) -> float:
    import msgspec

    from keystead.engine import connect
    from keystead.keys import Keyspace
    from keystead.patterns.worklist import WorkList

    class Message(msgspec.Struct, frozen=True):
        uid: str
        phone_number: str
        body: str
        queued_at: float
        retry: int = 0

    space = Keyspace("bench", tag="bench")
    messages = WorkList(space, "bench:messages", Message, purpose="measured")
    raw = WorkList(space, "bench:raw", bytes, purpose="measured")
    valkey = await connect(url)

    async def work(number: int, until: float) -> int:
        queue: WorkList[Any] = messages if shape == "message" else raw
        value: Any = Message("sms_q3Jx0V8", "+15550100", BODY, 1700000000.25) if shape == "message" else BODY.encode()
        worker = queue.worker(f"w{number}")
        done = 0
        while time.perf_counter() < until:
            await queue.push(valkey, *[value] * batch)
            taken = await worker.take(valkey, batch, now=1.0)
            done += (await worker.finish(valkey, taken)).count
        return done

    try:
        return await _rate(work, workers, seconds, warm_up)
    finally:
        await valkey.aclose()


async def by_hand(url: str, shape: str, batch: int, workers: int, seconds: float, warm_up: float) -> float:
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(url.replace("valkey://", "redis://", 1))
    take = client.register_script(TAKE)
    value = BODY.encode()

    async def work(number: int, until: float) -> int:
        purgatory, done = f"bench:purgatory:{number}", 0
        while time.perf_counter() < until:
            await client.rpush("bench:raw", *[value] * batch)
            items = await take(keys=["bench:raw", purgatory], args=[batch])
            await client.ltrim(purgatory, len(items), -1)
            done += len(items)
        return done

    try:
        return await _rate(work, workers, seconds, warm_up)
    finally:
        await client.aclose()


async def _rate(work: Any, workers: int, seconds: float, warm_up: float) -> float:
    await asyncio.gather(*(work(number, time.perf_counter() + warm_up) for number in range(workers)))
    begin = time.perf_counter()
    done = await asyncio.gather(*(work(number, begin + seconds) for number in range(workers)))
    return sum(done) / (time.perf_counter() - begin)


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("client", choices=("keystead", "by_hand"))
    flags.add_argument("--shape", choices=("message", "raw"), default="message")
    flags.add_argument("--batch", type=int, default=100)
    flags.add_argument("--workers", type=int, default=1)
    given = flags.parse_args()
    import uvloop

    run = keystead if given.client == "keystead" else by_hand
    rate = uvloop.run(run(given.url, given.shape, given.batch, given.workers, given.seconds, given.warm_up))
    library = "keystead" if given.client == "keystead" else "redis"
    protocol.answer({"per_second": rate}, {"library": f"{library} {version(library)}", "loop": "uvloop"})


if __name__ == "__main__":
    main()
