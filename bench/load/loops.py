"""The load generator: tasks that call again as soon as they are answered, for a fixed time.

It is kept as thin as Python allows, since whatever it costs is added to every client alike and so pulls every ratio
towards one.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Call = Callable[[], Awaitable[Any]]


class _Window:
    open = True

    def close(self) -> None:
        self.open = False


async def rate(calls: Sequence[Call], seconds: float, warm_up: float) -> float:
    """Calls per second, all tasks together; one closed-loop task for each of ``calls``."""
    await _count(calls, warm_up)
    gc.collect()
    done, took = await _count(calls, seconds)
    return done / took


async def waits(calls: Sequence[Call], seconds: float, warm_up: float) -> list[float]:
    """How long each single call took in seconds, shortest first; one closed-loop task for each of ``calls``."""
    await _count(calls, warm_up)
    gc.collect()
    window = _Window()
    asyncio.get_running_loop().call_later(seconds, window.close)
    found = await asyncio.gather(*(_time(call, window) for call in calls))
    return sorted(wait for task in found for wait in task)


def percentile(ascending: Sequence[float], share: float) -> float:
    """The value that ``share`` of all values do not exceed (nearest rank)."""
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))]


async def _count(calls: Sequence[Call], seconds: float) -> tuple[int, float]:
    window = _Window()
    asyncio.get_running_loop().call_later(seconds, window.close)
    begin = time.perf_counter()
    done = await asyncio.gather(*(_repeat(call, window) for call in calls))
    return sum(done), time.perf_counter() - begin


async def _repeat(call: Call, window: _Window) -> int:
    done = 0
    while window.open:
        await call()
        done += 1
    return done


async def _time(call: Call, window: _Window) -> list[float]:
    found: list[float] = []
    note, clock = found.append, time.perf_counter
    while window.open:
        begin = clock()
        await call()
        note(clock() - begin)
    return found
