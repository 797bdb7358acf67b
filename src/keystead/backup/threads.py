"""Work that waits for the disk, in a thread that is never left alone with a file."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, TypeVar

from keystead.errors import Unavailable

T = TypeVar("T")


class Stop:
    """Tells a thread that nobody wants its work any more: the next ``check`` in it raises."""

    def __init__(self) -> None:
        self._told = threading.Event()

    def tell(self) -> None:
        self._told.set()

    def check(self) -> None:
        if self._told.is_set():
            raise Unavailable("it was stopped")


async def in_thread(do: Callable[..., T], *arguments: Any, stop: Stop | None = None) -> T:
    """The answer of a function. Who is cancelled leaves only when the thread has ended: files can be removed then."""
    step = asyncio.ensure_future(asyncio.to_thread(do, *arguments))
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        if stop is not None:
            stop.tell()
        while not step.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({step})
        step.exception()  # looked at, so that nobody is warned of it
        raise


@asynccontextmanager
async def entered(block: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A block whose beginning and end wait for the disk. Once it has begun, its end comes in any case."""
    begun: list[T] = []

    def begin() -> None:
        begun.append(block.__enter__())

    try:
        await in_thread(begin)
        yield begun[0]
    finally:
        if begun:
            await in_thread(block.__exit__, None, None, None)
