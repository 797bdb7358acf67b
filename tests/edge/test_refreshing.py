"""What is kept in memory is looked at again and again, also after it could not be."""

import asyncio

import pytest

from keystead.edge import keep_refreshed, refreshing
from keystead.errors import Unavailable


async def test_what_cannot_be_refreshed_now_is_refreshed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshing, "REFRESH_SECONDS", 0.01)
    looks, enough = 0, asyncio.Event()

    async def refresh() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise Unavailable("the server is away")
        enough.set()

    keeping = asyncio.create_task(keep_refreshed(refresh, "what a test knows"))
    try:
        async with asyncio.timeout(20):
            await enough.wait()
    finally:
        keeping.cancel()
    assert looks >= 2
