"""Measure pairs of taking and freeing a lock: ``python -m bench.load.locks redis_py alone --tasks 100 --url URL``."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version

from bench.load import loops, protocol

LEASE_SECONDS = 10
KINDS = ("alone", "fenced", "shared")  # a lock for each task; the same, numbered; one for all

# Gives the call that takes and frees the lock of a name.
Pairs = Callable[[str], loops.Call]


@asynccontextmanager
async def keystead(url: str, tasks: int, kind: str) -> AsyncIterator[Pairs]:
    """A leased lock as its users hold it: the block, renewed and watched."""
    from keystead.clock import SystemClock
    from keystead.engine import connect
    from keystead.keys import Keyspace
    from keystead.patterns import LeasedLock

    room = Keyspace("bench", tag="bench")
    lock = LeasedLock(room, "bench:{name}:lock", lease_seconds=LEASE_SECONDS, purpose="measured",
                      fence="bench:{name}:fence" if kind == "fenced" else "")
    valkey, clock = await connect(url), SystemClock()
    patience = None if kind == "shared" else 0.0

    def pair(name: str) -> loops.Call:
        async def call() -> None:
            async with lock.at(name).hold(valkey, clock, patience_seconds=patience):
                pass

        return call

    try:
        yield pair
    finally:
        await valkey.aclose()


@asynccontextmanager
async def redis_py(url: str, tasks: int, kind: str) -> AsyncIterator[Pairs]:
    """redis-py's own lock, with its default of asking again every tenth of a second where others hold it."""
    from redis.asyncio import Redis

    from bench.load.clients import address

    host, port = address(url)
    async with Redis(host=host, port=port, max_connections=max(100, tasks + 28)) as client:
        def pair(name: str) -> loops.Call:
            async def call() -> None:
                async with client.lock(f"bench:{name}:lock", timeout=LEASE_SECONDS):
                    pass

            return call

        yield pair


@asynccontextmanager
async def pottery(url: str, tasks: int, kind: str) -> AsyncIterator[Pairs]:
    """pottery's lock on one server."""
    from pottery import AIORedlock
    from redis.asyncio import Redis

    from bench.load.clients import address

    host, port = address(url)
    async with Redis(host=host, port=port, max_connections=max(100, tasks + 28)) as client:
        def pair(name: str) -> loops.Call:
            async def call() -> None:
                lock = AIORedlock(key=name, masters={client}, auto_release_time=LEASE_SECONDS)
                if not await lock.acquire():
                    raise SystemExit("a lock that nobody holds was not taken; a figure would mean nothing")
                await lock.release()

            return call

        yield pair


LIBRARIES: dict[str, tuple[str, Callable[[str, int, str], AbstractAsyncContextManager[Pairs]]]] = {
    "keystead": ("keystead", keystead), "redis_py": ("redis", redis_py), "pottery": ("pottery", pottery),
}


async def measure(library: str, kind: str, tasks: int, url: str, seconds: float, warm_up: float) -> None:
    package, opened = LIBRARIES[library]
    async with opened(url, tasks, kind) as pair:
        calls = [pair("one" if kind == "shared" else f"task{number}") for number in range(tasks)]
        await calls[0]()
        figures = {"per_second": await loops.rate(calls, seconds, warm_up)}
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    protocol.answer(figures, {"library": f"{package} {version(package)}", "loop": loop})


if __name__ == "__main__":
    protocol.measure_library(measure, LIBRARIES, KINDS)
