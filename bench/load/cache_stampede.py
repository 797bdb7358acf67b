"""Count reads of the source when many processes miss one value at the same moment.

``python -m bench.load.cache_stampede keystead --processes 8 --tasks 200 --url URL``. Every read of the source takes
50 ms and is counted on the server.
"""

import asyncio
import multiprocessing
import time
from importlib.metadata import version
from multiprocessing.synchronize import Barrier
from typing import Any

from bench.load import protocol

LOAD_SECONDS = 0.05
LOADS = "bench:loads"
PATIENCE_SECONDS = 60


async def keystead(url: str, tasks: int, ready: Any, done: Any) -> None:
    from keystead.engine import connect
    from keystead.keys import Keyspace
    from keystead.patterns import Cache

    cache: Cache[str] = Cache(
        Keyspace("bench", tag="bench"), "bench:{name}", str, shared_seconds=60.0, local_seconds=60.0,
        channel="ps:bench", collab=True, purpose="measured",
    )
    valkey = await connect(url)

    async def load() -> str:
        await valkey.incr(LOADS)
        await asyncio.sleep(LOAD_SECONDS)
        return "value"

    async with cache.open(valkey) as instance:
        await ready()
        _check(await asyncio.gather(*(instance.get("crowd", load=load) for _ in range(tasks))))
        done()
    await valkey.aclose()


async def cashews(url: str, tasks: int, ready: Any, done: Any) -> None:
    import redis.asyncio
    from cashews import Cache

    place = url.replace("valkey://", "redis://", 1)
    client = redis.asyncio.Redis.from_url(place, max_connections=tasks)
    cache = Cache()
    cache.setup(place, client_side=True, max_connections=tasks + 28)
    await cache.init()

    @cache(ttl="1m", key="crowd", lock=True)
    async def read() -> str:
        await client.incr(LOADS)
        await asyncio.sleep(LOAD_SECONDS)
        return "value"

    await ready()
    _check(await asyncio.gather(*(read() for _ in range(tasks))))
    done()


async def aiocache(url: str, tasks: int, ready: Any, done: Any) -> None:
    import redis.asyncio
    from aiocache import Cache, cached_stampede
    from aiocache.serializers import JsonSerializer

    from bench.load.clients import address

    host, port = address(url)
    # A library may let every task through to the source; the default pool would refuse the 101st of them.
    client = redis.asyncio.Redis(host=host, port=port, max_connections=tasks)

    @cached_stampede(key="crowd", lease=2, cache=Cache.REDIS, ttl=60, endpoint=host, port=port,
                     serializer=JsonSerializer(), pool_max_size=tasks + 28)
    async def read() -> str:
        await client.incr(LOADS)
        await asyncio.sleep(LOAD_SECONDS)
        return "value"

    await _open_all(read.cache.client.connection_pool, tasks)
    await ready()
    _check(await asyncio.gather(*(read() for _ in range(tasks))))
    done()


async def _open_all(pool: Any, connections: int) -> None:
    """One connection for each task, before the clock runs.

    A crowd that opens its connections all at once takes about five seconds for it, which is as long as the library lets
    any call take: then it fails before it has read anything.
    """
    opened = [await pool.get_connection() for _ in range(connections)]
    for connection in opened:
        await pool.release(connection)


LIBRARIES = {"keystead": keystead, "cashews": cashews, "aiocache": aiocache}


def _check(values: list[str | None]) -> None:
    if set(values) != {"value"}:
        raise SystemExit("someone did not get the value; a figure would mean nothing")


def child(library: str, url: str, tasks: int, barrier: Barrier, waits: Any) -> None:
    import uvloop

    begin = 0.0

    async def ready() -> None:
        nonlocal begin
        await asyncio.to_thread(barrier.wait, PATIENCE_SECONDS)
        begin = time.perf_counter()

    def done() -> None:
        waits.put(time.perf_counter() - begin)

    uvloop.run(LIBRARIES[library](url, tasks, ready, done))


async def loads(url: str) -> int:
    import redis.asyncio

    async with redis.asyncio.Redis.from_url(url.replace("valkey://", "redis://", 1)) as client:
        return int(await client.get(LOADS) or 0)


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("library", choices=tuple(LIBRARIES))
    flags.add_argument("--processes", type=int, default=8)
    flags.add_argument("--tasks", type=int, default=200)
    given = flags.parse_args()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(given.processes + 1)
    waits = context.SimpleQueue()
    crowd = [
        context.Process(target=child, args=(given.library, given.url, given.tasks, barrier, waits))
        for _ in range(given.processes)
    ]
    for process in crowd:
        process.start()
    barrier.wait(PATIENCE_SECONDS)
    for process in crowd:
        process.join()
    if any(process.exitcode for process in crowd):
        raise SystemExit("a process of the crowd failed; a figure would mean nothing")
    protocol.answer(
        {"loads": asyncio.run(loads(given.url)), "seconds": max(waits.get() for _ in crowd)},
        {"library": f"{given.library} {version(given.library)}", "processes": given.processes, "tasks": given.tasks},
    )


if __name__ == "__main__":
    main()
