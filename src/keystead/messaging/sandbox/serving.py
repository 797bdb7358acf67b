"""The sandbox as a server of its own: within a test, or as a process that can be killed."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from keystead.jobs.crew import pause
from keystead.messaging.sandbox.sandbox import Sandbox

DATE_SECONDS: Final = 1.0


def listening(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket that accepts connections, so that the address is known before anything is served."""
    made = socket.create_server((host, port), backlog=2048)
    made.setblocking(False)
    return made


def url_of(made: socket.socket) -> str:
    host, port = made.getsockname()[:2]
    return f"http://{host}:{port}"


@asynccontextmanager
async def serving(
    sandbox: Sandbox, made: socket.socket, *, calls: bool = True, follows: bool = True
) -> AsyncIterator[None]:
    """Answer on the socket while the block runs, and call webhooks too unless another does (``calls``).

    One that only answers ``follows`` what is set elsewhere, unless this same sandbox works here already.
    """
    import uvicorn

    stop = asyncio.Event()

    class _Server(uvicorn.Server):
        """Leaves signals alone: whoever owns the process decides what they mean.

        It is told when it is to stop, instead of looking ten times a second.
        """

        async def main_loop(self) -> None:
            while not await self.on_tick(0):  # which sets the date of answers
                await pause(DATE_SECONDS, stop)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(sandbox.app, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=60,
                            timeout_graceful_shutdown=2, ws="none")
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(server.serve([made]))]
        if calls or follows:
            tasks.append(group.create_task(sandbox.work(stop) if calls else sandbox.follow(stop)))
        try:
            yield
        finally:
            server.should_exit = True
            stop.set()
            await asyncio.wait(tasks)
            made.close()
