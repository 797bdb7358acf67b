"""Measure reads of cached values that are there: ``python -m bench.load.cache_hits keystead server --tasks 100``.

``server``: every read asks the server. ``process``: the value is held in the process, kept right by the server.
``memory``: the value is held in the process and nowhere else.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any

from bench.load import loops, protocol

VALUE = {"id": 7, "name": "a value of ordinary size", "tags": ["one", "two", "three"]}
READS_PER_TURN = 20
KINDS = ("server", "process", "memory")

# Gives the call that reads the value of a name.
Reads = Callable[[str], loops.Call]


async def _never() -> Any:
    raise SystemExit("the value was to be there; a figure would mean nothing")


@asynccontextmanager
async def keystead(url: str, kind: str, tasks: int) -> AsyncIterator[Reads]:
    from keystead.engine import connect
    from keystead.keys import Keyspace
    from keystead.patterns import Cache

    room = Keyspace("bench", tag="bench")
    times: dict[str, Any] = {"shared_seconds": 600.0} if kind != "memory" else {}
    if kind != "server":
        times["local_seconds"] = 600.0
    if kind == "process":
        times |= {"channel": "ps:bench", "collab": True}
    cache: Cache[dict[str, Any]] = Cache(room, "bench:{name}", dict, purpose="measured", **times)
    valkey = await connect(url)
    try:
        async with cache.open(valkey) as instance:
            async def load() -> Any:
                return VALUE

            for number in range(tasks):
                await instance.get(str(number), load=load)

            def read(name: str) -> loops.Call:
                get = instance.get
                return lambda: get(name, load=_never)

            yield read
    finally:
        await valkey.aclose()


@asynccontextmanager
async def cashews(url: str, kind: str, tasks: int) -> AsyncIterator[Reads]:
    from cashews import Cache

    cache = Cache()
    place = url.replace("valkey://", "redis://", 1)
    if kind == "memory":
        cache.setup("mem://")
    else:
        cache.setup(place, client_side=kind == "process", max_connections=tasks + 28)
    await cache.init()
    try:
        for number in range(tasks):
            await cache.set(str(number), VALUE, expire=600)
            await cache.get(str(number))
        yield lambda name: lambda: cache.get(name)
    finally:
        await cache.close()


@asynccontextmanager
async def aiocache(url: str, kind: str, tasks: int) -> AsyncIterator[Reads]:
    from aiocache import Cache
    from aiocache.serializers import JsonSerializer

    from bench.load.clients import address

    if kind == "memory":
        cache = Cache(Cache.MEMORY)
    else:
        host, port = address(url)
        cache = Cache(Cache.REDIS, endpoint=host, port=port, serializer=JsonSerializer(), pool_max_size=tasks + 28)
    try:
        for number in range(tasks):
            await cache.set(str(number), VALUE, ttl=600)
        yield lambda name: lambda: cache.get(name)
    finally:
        await cache.close()


LIBRARIES: dict[str, Callable[[str, str, int], AbstractAsyncContextManager[Reads]]] = {
    "keystead": keystead, "cashews": cashews, "aiocache": aiocache,
}


def _many(call: loops.Call) -> loops.Call:
    async def calls() -> None:
        for _ in range(READS_PER_TURN):
            await call()
        await asyncio.sleep(0)

    return calls


async def measure(library: str, kind: str, tasks: int, url: str, seconds: float, warm_up: float) -> float:
    async with LIBRARIES[library](url, kind, tasks) as read:
        calls = [read(str(number)) for number in range(tasks)]
        for call in calls:
            if await call() != VALUE:
                raise SystemExit("the value did not come back as it was; a figure would mean nothing")
        # A read that the process answers never waits, so each task steps aside by itself now and then; so do all.
        return await loops.rate([_many(call) for call in calls], seconds, warm_up) * READS_PER_TURN


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("library", choices=tuple(LIBRARIES))
    flags.add_argument("kind", choices=KINDS)
    flags.add_argument("--tasks", type=int, default=100)
    given = flags.parse_args()
    import uvloop

    rate = uvloop.run(measure(given.library, given.kind, given.tasks, given.url, given.seconds, given.warm_up))
    protocol.answer(
        {"per_second": rate}, {"library": f"{given.library} {version(given.library)}", "loop": "uvloop"}
    )


if __name__ == "__main__":
    main()
