"""Measure checks of a limit: ``python -m bench.load.limit_checks keystead fixed --tasks 100 --url URL``.

Every check counts one use and is allowed; every task has a key of its own.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version

from bench.load import loops, protocol

MOST, WINDOW_SECONDS = 1_000_000, 60
KINDS = ("fixed", "sliding", "rate")

# Gives the call that checks the limit of a key, and says whether an answer means allowed.
Checks = tuple[Callable[[str], loops.Call], Callable[[object], bool]]


@asynccontextmanager
async def keystead(url: str, kind: str) -> AsyncIterator[Checks]:
    from keystead.engine import connect
    from keystead.keys import Keyspace
    from keystead.patterns import FixedWindow, Gcra, SlidingLog

    room = Keyspace("bench", tag="bench")
    valkey = await connect(url)
    if kind == "fixed":
        fixed = FixedWindow(room, "bench:{key}", most=MOST, window_seconds=WINDOW_SECONDS, purpose="measured")
        make = lambda key: lambda: fixed.at(key).use(valkey)  # noqa: E731
    elif kind == "rate":
        rate = Gcra(room, "bench:{key}", most=MOST, per_seconds=WINDOW_SECONDS, purpose="measured")
        make = lambda key: lambda: rate.at(key).use(valkey, now=time.time())  # noqa: E731
    else:
        log = SlidingLog(room, "bench:{key}", windows=((100_000, WINDOW_SECONDS),), purpose="measured")
        make = lambda key: lambda: log.at(key).use(valkey, now=time.time())  # noqa: E731
    try:
        yield make, lambda answer: answer.allowed  # type: ignore[attr-defined]
    finally:
        await valkey.aclose()


@asynccontextmanager
async def throttled_py(url: str, kind: str) -> AsyncIterator[Checks]:
    from throttled.asyncio import Throttled, rate_limiter, store

    using = {"fixed": "fixed_window", "sliding": "sliding_window", "rate": "gcra"}[kind]
    throttle = Throttled(
        using=using, quota=rate_limiter.per_min(MOST, burst=MOST),
        store=store.RedisStore(server=url, options={"REUSE_CONNECTION": True}),
    )
    yield (lambda key: lambda: throttle.limit(key)), lambda answer: not answer.limited  # type: ignore[attr-defined]


@asynccontextmanager
async def limits(url: str, kind: str) -> AsyncIterator[Checks]:
    from limits import parse
    from limits.aio import strategies
    from limits.aio.storage import RedisStorage

    storage = RedisStorage("async+" + url, implementation="redispy")
    chosen = {"fixed": strategies.FixedWindowRateLimiter, "sliding": strategies.MovingWindowRateLimiter}[kind]
    limiter = chosen(storage)
    limit = parse(f"{MOST if kind == 'fixed' else 100_000}/minute")
    yield (lambda key: lambda: limiter.hit(limit, key)), bool


LIBRARIES: dict[str, tuple[str, Callable[[str, str], AbstractAsyncContextManager[Checks]]]] = {
    "keystead": ("keystead", keystead), "throttled_py": ("throttled-py", throttled_py), "limits": ("limits", limits),
}


async def measure(library: str, kind: str, tasks: int, url: str, seconds: float, warm_up: float) -> None:
    distribution, opened = LIBRARIES[library]
    async with opened(url.replace("valkey://", "redis://"), kind) as (make, allowed):
        calls = [make(f"key{number}") for number in range(tasks)]
        if not allowed(await calls[0]()):
            raise SystemExit("the first check was refused; a figure for refusals would mean something else")
        figures = {"per_second": await loops.rate(calls, seconds, warm_up)}
        if not allowed(await calls[0]()):
            raise SystemExit("the last check was refused; a figure for refusals would mean something else")
    protocol.answer(figures, {"library": f"{distribution} {version(distribution)}"})


if __name__ == "__main__":
    protocol.measure_library(measure, LIBRARIES, KINDS)
