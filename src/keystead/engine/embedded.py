"""The Valkey server that Keystead runs itself, in a directory of its own.

One process owns the server; any other attaches to it as a client. What lies in the directory:

=================  ===============================================================================
``owner.lock``     held by the owner while it lives; its process id is inside
``server.lock``    held by the server while it lives, so that two never write one set of data
``server.json``    how to reach the running server
``valkey.conf``    what the server was started with
``valkey.log``     what the server says; ``valkey.log.1`` is the part before
``password``       only with a loopback port
``appendonlydir``  the data
=================  ===============================================================================
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote

import hiredis

from keystead.engine.address import Address, Kind
from keystead.engine.embedded_files import (
    Running,
    absolute,
    attach,
    find_password,
    make_directory,
    make_password,
    make_socket_path,
    remove_socket_path,
    require_free,
)
from keystead.engine.embedded_lock import FileLock
from keystead.engine.embedded_process import Option, Readiness, ValkeyProcess, call
from keystead.errors import Conflict, Unavailable
from keystead.settings import EmbeddedSettings
from keystead.telemetry import counts, logger

__all__ = ["EmbeddedServer", "attach"]

_ANSWER_SECONDS = 20.0
_STOP_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 5.0
_RESTARTS = 8  # in a row, each before the server had run for _STEADY_SECONDS
_STEADY_SECONDS = 30.0

_log = logger("engine")
counts.describe("embedded_restarts", "times the embedded server ended by itself and was started again")


class EmbeddedServer:
    """A running server that this process owns. Made by ``start``."""

    def __init__(self, directory: Path, settings: EmbeddedSettings, options: Mapping[str, Option]) -> None:
        self.directory = directory
        self.pid = 0  # of the server; another one after each restart, from when it answers
        self._password = ""
        self._socket = make_socket_path(directory)
        if settings.port:
            require_free(settings.port)
            self._password = make_password(directory)
        self._port = settings.port
        standing = _configuration(settings, self._socket, self._password)
        self._process = ValkeyProcess(
            directory, standing | dict(options), password=self._password, grace_seconds=_STOP_SECONDS
        )
        self._failed: asyncio.Future[Unavailable] = asyncio.get_running_loop().create_future()

    @classmethod
    @asynccontextmanager
    async def start(
        cls, directory: Path, settings: EmbeddedSettings | None = None, *, options: Mapping[str, Option] | None = None
    ) -> AsyncIterator[Self]:
        """Run a server on the data in ``directory`` until the block ends; it answers when the block begins.

        The directory is made if it is missing, open to this user only. A server that dies is started again with its
        data; see ``wait_until_failed``. The server ends when this process does, even by SIGKILL; a process that
        forks and leaves its child to go on must start the server after that. ``options`` are further configuration
        lines and win.

        Refuses with ``Conflict`` while another process owns the directory, with ``Invalid`` what cannot work (no
        permission, port taken), and with ``Unavailable``, quoting the server's log, if the server does not come up.
        """
        directory = absolute(directory)
        with make_directory(directory) as owner_lock:
            if not await owner_lock.acquire(seconds=0.3):
                raise Conflict(
                    f"a server already runs in {directory}, owned by process {owner_lock.holder}; use it (every other "
                    "command attaches to it), stop that process, or name another with --data DIR or embedded://DIR"
                )
            owner_lock.sign()
            server = cls(directory, settings or EmbeddedSettings(), options or {})
            try:
                await server._bring_up()
                watch = asyncio.get_running_loop().create_task(server._keep_up())
                try:
                    yield server
                finally:
                    watch.cancel()
                    await asyncio.gather(watch, return_exceptions=True)
            finally:
                await asyncio.to_thread(server._take_down)

    @property
    def url(self) -> str:
        """The address by which any process of this user reaches the server. Holds no secret."""
        return f"embedded://{quote(str(self.directory))}"

    @property
    def address(self) -> Address:
        """The same, resolved: the socket and the password."""
        return Address(Kind.UNIX, path=self._socket, password=self._password or None)

    async def wait_until_failed(self) -> Unavailable:
        """Return the reason once the server kept dying and was given up. The owner should stop then."""
        return await asyncio.shield(self._failed)

    async def _bring_up(self) -> None:
        with FileLock(self.directory / "server.lock") as lock:
            # An owner that was killed leaves a server that needs a moment to close its files.
            if not await lock.acquire(seconds=2.0):
                await asyncio.to_thread(_ask_to_stop, self.directory)
                if not await lock.acquire(seconds=_STOP_SECONDS + 2.0):
                    raise Conflict(
                        f"process {lock.holder}, left behind by an owner that died, still uses {self.directory}; "
                        "end it and try again"
                    )
            try:
                self._process.spawn(inherited=(lock.descriptor,))
                lock.sign(self._process.pid)
                await self._wait_until_ready()
            except BaseException:
                await asyncio.to_thread(self._process.stop)
                raise
        self.pid = self._process.pid
        Running(self.pid, str(self._socket), self._port).save(self.directory)

    async def _wait_until_ready(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ANSWER_SECONDS
        while (readiness := await asyncio.to_thread(self._process.probe)) is not Readiness.READY:
            if readiness is Readiness.LOADING:
                deadline = loop.time() + _ANSWER_SECONDS
            elif loop.time() > deadline:
                raise self._process.failure(f"did not answer within {_ANSWER_SECONDS:g} seconds")
            await asyncio.sleep(0.005)

    async def _keep_up(self) -> None:
        """Start the server again whenever it ends, until that proves to be of no use."""
        loop = asyncio.get_running_loop()
        restarts, up_since = 0, loop.time()
        while True:
            await self._wait_until_ended()
            error = self._process.failure(f"ended by itself with code {self._process.exit_code}")
            if loop.time() - up_since > _STEADY_SECONDS:
                restarts = 0
            while True:
                if restarts == _RESTARTS:
                    _log.error("embedded_server_given_up", directory=str(self.directory), reason=str(error))
                    self._failed.set_result(error)
                    return
                _log.warning("embedded_server_ended", directory=str(self.directory), reason=str(error))
                await asyncio.sleep(min(_FIRST_PAUSE_SECONDS * 2**restarts, _LONGEST_PAUSE_SECONDS))
                restarts += 1
                counts.add("embedded_restarts")
                try:
                    await self._bring_up()
                except (Unavailable, Conflict) as problem:
                    error = problem if isinstance(problem, Unavailable) else Unavailable(str(problem))
                else:
                    break
            up_since = loop.time()

    async def _wait_until_ended(self) -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        lifeline = self._process.lifeline()
        loop.add_reader(lifeline, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(lifeline)
        await asyncio.to_thread(self._process.wait)  # the pipe ends an instant before its process does

    def _take_down(self) -> None:
        Running.remove(self.directory)
        self._process.stop()
        remove_socket_path(self.directory, self._socket)


def _configuration(settings: EmbeddedSettings, socket_path: Path, password: str) -> dict[str, Option]:
    options: dict[str, Option] = {
        "unixsocket": socket_path,
        "unixsocketperm": "700",
        "bind": "127.0.0.1",
        "protected-mode": "yes",
        "port": settings.port,
        "appendonly": "yes",
        "appendfsync": settings.fsync,
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory": settings.memory_bytes,
        "maxmemory-policy": "noeviction",
        "enable-debug-command": "no",
        "enable-module-command": "no",
        "enable-protected-configs": "no",
    }
    if password:
        options["requirepass"] = password
    return options


def _ask_to_stop(directory: Path) -> None:
    """Tell a server whose owner died to end; it holds its lock until it has."""
    running = Running.load(directory)
    if running is not None:
        with contextlib.suppress(OSError, hiredis.ReplyError):
            call(Path(running.socket), "SHUTDOWN", password=find_password(directory) if running.port else "")
