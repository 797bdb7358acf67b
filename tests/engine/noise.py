"""Complaints of the event loop: tasks and futures whose error nobody saw, callbacks that failed."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def no_noise() -> Iterator[None]:
    """Fail if the event loop complained about anything inside the block."""
    loop = asyncio.get_running_loop()
    heard: list[dict[str, Any]] = []
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: heard.append(context))
    try:
        yield
        gc.collect()
    finally:
        loop.set_exception_handler(before)
    assert heard == []
