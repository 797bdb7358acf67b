"""A Valkey server for tests: in a temporary directory, reachable by socket and loopback port, gone with the process."""

import random
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keystead.engine.embedded_process import Option, ValkeyProcess
from keystead.errors import Unavailable

_START_ATTEMPTS = 5
_ANSWER_SECONDS = 60.0  # only a busy machine needs more than one


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on now.

    They lie below the range the system hands out by itself, so that an outgoing connection cannot take one before
    its server does. Another test process still can: whoever starts a server should be ready to ask again.
    """
    found: list[int] = []
    with _closing_all() as held:
        while len(found) < count:
            port = random.randrange(20000, 32000)
            candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            held.append(candidate)
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


@contextmanager
def _closing_all() -> Iterator[list[socket.socket]]:
    held: list[socket.socket] = []
    try:
        yield held
    finally:
        for each in held:
            each.close()


class LocalServer:
    """One server for tests. Data survives ``kill`` and ``restart``; the directory goes with ``stop``.

    DEBUG commands are allowed. ``options`` are further configuration lines and win over the kit's own.
    """

    def __init__(self, options: Mapping[str, Option] | None = None) -> None:
        self._options = dict(options or {})
        self._process: ValkeyProcess | None = None

    @property
    def process(self) -> ValkeyProcess:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def socket_path(self) -> Path:
        return self.process.directory / "s"

    @property
    def port(self) -> int:
        return int(str(self.process.options["port"]))

    @property
    def url(self) -> str:
        """The address through the private socket."""
        return f"unix://{self.socket_path}"

    @property
    def tcp_url(self) -> str:
        """The address through the loopback port; what a proxy stands before and a TCP test connects to."""
        return f"valkey://127.0.0.1:{self.port}"

    def start(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix="keystead-test-"))
        for attempt in range(1, _START_ATTEMPTS + 1):
            standing: dict[str, Option] = {
                "unixsocket": directory / "s",
                "unixsocketperm": "700",
                "bind": "127.0.0.1",
                "port": free_ports(1)[0],
                "save": "",
                "appendonly": "yes",
                "appendfsync": "no",  # a killed process loses nothing that was answered; only a lost machine would
                "enable-debug-command": "yes",
            }
            self._process = ValkeyProcess(directory, standing | self._options, remove_directory=True)
            try:
                self._process.start(answer_seconds=_ANSWER_SECONDS)
                return
            except Unavailable as error:
                if attempt == _START_ATTEMPTS or "bind" not in str(error):
                    shutil.rmtree(directory, ignore_errors=True)
                    raise

    def stop(self) -> None:
        self.process.stop()
        shutil.rmtree(self.process.directory, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL. ``restart`` brings the server back with its data, on the same socket and port."""
        self.process.kill()

    def restart(self) -> None:
        self.process.stop()
        self.process.start(answer_seconds=_ANSWER_SECONDS)

    def ensure_running(self) -> None:
        """Start the server again if a test left it killed."""
        if not self.process.running:
            self.process.start(answer_seconds=_ANSWER_SECONDS)

    def call(self, *command: str | bytes | int) -> Any:
        """One command on a connection of its own, without an event loop: for set-up and for looking from outside."""
        return self.process.call(*command, seconds=30.0)
