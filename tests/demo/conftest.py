"""A whole installation in this event loop, reached over HTTP as the town reaches one."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from keystead.app import App, Running
from keystead.demo import Client, program
from keystead.pace import PACE_FILE
from keystead.settings import load_settings
from keystead.web import serve
from keystead.web.serving import Ready

WAIT_SECONDS = 120


@dataclass(frozen=True)
class Installation:
    """A running one, and a client with a key that may do everything."""

    running: Running
    client: Client
    url: str
    key: str


Start = Callable[..., "AsyncIterator[Installation]"]


@asynccontextmanager
async def installed(
    directory: Path, *, speed: float = 1.0, shown_at: float | None = None, **flags: object
) -> AsyncIterator[Installation]:
    """Up for the time of the block; ``shown_at``: what its clock shows when it begins."""
    if shown_at is not None:
        now = time.time()
        (directory / PACE_FILE).write_text(json.dumps({
            "pace": {"speed": 1.0, "real_at": now, "shown_at": shown_at}, "reached_at": shown_at, "written_at": now,
        }))
    settings = load_settings({
        "valkey.url": f"embedded://{directory}", "http.port": 0, "clock.speed": speed, "log.level": "error",
        "reminders.youngest_seconds": 0, **{name.replace("__", "."): value for name, value in flags.items()},
    }, environment={})
    found: asyncio.Future[tuple[Running, Ready]] = asyncio.get_running_loop().create_future()

    async def beside(running: Running, ready: Ready) -> None:
        found.set_result((running, ready))
        await asyncio.Event().wait()

    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(App(settings, [program]), dashboard=False, beside=beside, stop=stop))
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.wait({serving, found}, return_when=asyncio.FIRST_COMPLETED)
                running, ready = await found
                key = (await running.admin_keys.create("tests", ("*",))).text
            async with Client(ready.url, key) as client:
                yield Installation(running, client, ready.url, key)
        finally:
            stop.set()


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Look again and again until it holds; a slow machine has time."""
    deadline = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < deadline, f"it did not come to this in {seconds} seconds: {what}"
        await asyncio.sleep(0.2)


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    async with installed(tmp_path) as found:
        yield found
