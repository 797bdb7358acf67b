"""Running the assembled server in this process and event loop, until it is told to stop."""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from keystead.app import App, Running
from keystead.errors import Invalid, Unavailable
from keystead.settings import HttpSettings
from keystead.web.links import forget_address, link_to, write_address

STOP_SECONDS = 5
DATE_SECONDS = 1.0
COMPANY_SECONDS = 8.0
WEBSOCKET_MESSAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ready:
    """Where the server is reached, and the one-time link that opens its dashboard."""

    url: str
    login_url: str


Beside = Callable[[Running, Ready], Coroutine[None, None, None]]


async def serve(
    app: App, *, dashboard: bool = True, works: bool = True, shares_port: bool = False,
    on_ready: Callable[[Ready], None] | None = None, on_step: Callable[[str], None] = lambda step: None,
    beside: Beside | None = None, stop: asyncio.Event | None = None,
) -> None:
    """Start everything, call ``on_ready`` once requests are answered, and serve until SIGINT, SIGTERM or ``stop``.

    Without ``works`` only requests are answered, and no server is started: jobs are run by other processes.
    ``shares_port``: others of this user may listen on the same port and get their share of the connections.
    ``beside`` goes on from when requests are answered until the stop, which cancels it first.
    Refuses with ``Invalid`` a port that is taken, before anything else is started. Open websockets do not delay the
    stop by more than a couple of seconds. Raises ``Unavailable`` when the embedded server was given up.
    """
    with listening(app.settings.http, shared=shares_port) as listener:
        port = listener.getsockname()[1]
        public_url = base_url(app.settings.http.host, port)
        async with app.running(
            start_server=works, works=works, answers=True, public_url=public_url, on_step=on_step
        ) as running:
            on_step("Opening the doors")
            from keystead.web.server import build

            assembled = build(running, port=port, dashboard=dashboard)
            config = _config(assembled)
            await _run(config, listener, running, on_ready, stop or asyncio.Event(), beside)


def _config(assembled: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        assembled, log_config=None, access_log=False, server_header=False, proxy_headers=False, lifespan="on",
        timeout_graceful_shutdown=STOP_SECONDS, ws_max_size=WEBSOCKET_MESSAGE_BYTES,
        ws="websockets-sansio",
    )


async def _run(
    config: uvicorn.Config, listener: socket.socket, running: Running, on_ready: Callable[[Ready], None] | None,
    stop: asyncio.Event, beside: Beside | None = None,
) -> None:
    server = _Server(config)
    address = base_url(running.settings.http.host, listener.getsockname()[1])
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listener]))
        company: list[asyncio.Task[None]] = []
        helpers = [tasks.create_task(_stop_when_told(server, stop, company)), tasks.create_task(server.ready.wait())]
        failing = tasks.create_task(_stop_when_failed(server, running))
        await asyncio.wait({serving, helpers[1]}, return_when=asyncio.FIRST_COMPLETED)
        if server.started:
            ready = Ready(address, link_to(address, running.tickets, running.settings.http))
            write_address(running.data_directory, address)
            if on_ready is not None:
                on_ready(ready)
            if beside is not None:
                company.append(tasks.create_task(beside(running, ready)))
        try:
            await serving
        finally:
            for task in (*helpers, *company, failing):
                task.cancel()
            forget_address(running.data_directory, address)
    if failing.done() and not failing.cancelled():
        raise failing.result()


async def _stop_when_failed(server: uvicorn.Server, running: Running) -> Unavailable:
    """Without its server the installation only pretends to run."""
    if running.server is None:
        await asyncio.Event().wait()
    assert running.server is not None
    failure = await running.server.wait_until_failed()
    server.should_exit = True
    return failure


class _Server(uvicorn.Server):
    """Tells when it is ready, and leaves signals alone: whoever owns the process decides what they mean.

    It hears at once that it is to stop, instead of looking ten times a second.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        self._told = asyncio.Event()
        super().__init__(config)
        self.ready = asyncio.Event()

    @property
    def should_exit(self) -> bool:
        return self._told.is_set()

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._told.set() if value else self._told.clear()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # which sets the date of answers
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), DATE_SECONDS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _stop_when_told(server: uvicorn.Server, stop: asyncio.Event, company: list[asyncio.Task[None]]) -> None:
    """Who is beside the server leaves before it does, while requests are still answered."""
    loop = asyncio.get_running_loop()
    held: list[signal.Signals] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not in the main thread, as in some tests: then only the event counts.
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(number, stop.set)
            held.append(number)
    try:
        await stop.wait()
        for task in company:
            task.cancel()
        if company:
            await asyncio.wait(company, timeout=COMPANY_SECONDS)
        server.should_exit = True
        await asyncio.Event().wait()  # until the server has ended: a second signal must not cut its end short
    finally:
        for number in held:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def listening(settings: HttpSettings, *, shared: bool = False) -> Iterator[socket.socket]:
    """A socket on the address of the settings. ``Invalid``, with what to do, when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            listener.bind((settings.host, settings.port))
            listener.listen(512)
        except OverflowError:
            raise Invalid(f"there is no port {settings.port}; choose one up to 65535 with --port") from None
        except OSError as error:
            raise Invalid(_why_not(settings, error)) from error
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()


@contextlib.contextmanager
def held(settings: HttpSettings) -> Iterator[int]:
    """Keep a port for processes that share it, without listening; says which. ``Invalid`` when others have it."""
    with listening(settings) as alone:  # who shares asks nobody, so whether it is free is found out first
        port: int = alone.getsockname()[1]
    holder = socket.socket(alone.family, socket.SOCK_STREAM)
    with holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((settings.host, port))
        yield port


def _why_not(settings: HttpSettings, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (f"port {settings.port} is taken by another program; choose another with --port, or --port 0 for a "
                "free one")
    if error.errno == errno.EACCES:
        return f"port {settings.port} needs more rights than this user has; choose one above 1023 with --port"
    return f"cannot listen on {settings.host}: {error.strerror or error}; set http.host to an address of this machine"


def base_url(host: str, port: int) -> str:
    """Where a server that listens there is reached on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"
