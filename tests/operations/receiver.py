"""A receiver of webhooks over a socket, that can be told to refuse."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Receiver:
    """``status`` is what it answers with; ``requests`` are headers and bodies it got; ``came`` stirs on each. It
    answers while ``answers`` is set."""

    def __post_init__(self) -> None:
        self.answers.set()

    url: str = ""
    status: int = 204
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append((dict(request.headers), await request.read()))
        self.came.set()
        await self.answers.wait()
        return web.Response(status=self.status, headers={"Location": "http://127.0.0.1:9/"})

    async def until(self, count: int, seconds: float = 30) -> None:
        async with asyncio.timeout(seconds):
            while len(self.requests) < count:
                self.came.clear()
                await self.came.wait()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.handle)
    app.router.add_get("/hook", receiver.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    receiver.url = f"http://127.0.0.1:{port}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
