"""The files by which the owner of an embedded server and everyone else find one another."""

import hashlib
import os
import secrets
import socket
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Self

import msgspec

from keystead.engine.address import Address, Kind
from keystead.engine.embedded_lock import FileLock, is_locked
from keystead.errors import Invalid, Unavailable

_SOCKET_PATH_BYTES = 100  # the system takes 104 or 108, the closing zero included
_SOCKET_NAME = "valkey.sock"


class Running(msgspec.Struct, frozen=True):
    """``server.json``: how to reach the server that runs in the directory."""

    pid: int
    socket: str
    port: int = 0

    def save(self, directory: Path) -> None:
        write_private(directory / "server.json.new", msgspec.json.encode(self))
        (directory / "server.json.new").replace(directory / "server.json")

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        try:
            return msgspec.json.decode((directory / "server.json").read_bytes(), type=cls)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    @staticmethod
    def remove(directory: Path) -> None:
        (directory / "server.json").unlink(missing_ok=True)


def attach(where: Address | Path | str) -> Address:
    """The address of the server that another process runs in a directory.

    ``where`` is the directory or its ``embedded://`` address, whose database and client name are kept. While the
    owner restarts a server that died, the address is given all the same: clients wait. ``Unavailable`` if no process
    owns the directory, ``Invalid`` if it may not be used.
    """
    address = where if isinstance(where, Address) else Address(Kind.EMBEDDED, path=Path(where))
    assert address.path is not None
    directory = absolute(address.path)
    try:
        if not is_locked(directory / "owner.lock"):
            raise Unavailable(f"no server runs in {directory}; start it with `keystead up`")
        running = Running.load(directory)
        if running is None:
            raise Unavailable(f"the server in {directory} is just starting; try again in a moment")
        password = find_password(directory) if running.port else None
    except NotADirectoryError as error:
        raise Invalid(f"no server can run in {directory}: that is not a directory") from error
    except OSError as error:
        raise Invalid(
            f"the server in {directory} belongs to another user ({error.strerror}); run as that user, or give that "
            "server a port and name it with valkey://"
        ) from error
    return replace(address, kind=Kind.UNIX, path=Path(running.socket), password=password)


def absolute(directory: Path) -> Path:
    """The directory as every process must spell it, whatever its own working directory is."""
    return directory.expanduser().absolute()


def make_directory(directory: Path) -> FileLock:
    """Make the data directory for this user alone, see that it can be written, and open its owner's lock."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe, name = tempfile.mkstemp(prefix=".writable-", dir=directory)
        os.close(probe)
        Path(name).unlink()
        return FileLock(directory / "owner.lock")
    except OSError as error:
        raise Invalid(
            f"the data directory {directory} cannot be written ({error.strerror}); mend its permissions or name "
            "another one with --data DIR or embedded://DIR"
        ) from error


def make_password(directory: Path) -> str:
    """The password of the loopback port, from a file only this user can read; made once.

    A file that others could read, or that a crash left empty, is replaced.
    """
    path = directory / "password"
    if not path.exists() or path.stat().st_mode & 0o077 or not find_password(directory):
        path.unlink(missing_ok=True)
        write_private(path, secrets.token_urlsafe(32).encode())
    return find_password(directory)


def find_password(directory: Path) -> str:
    return (directory / "password").read_text(encoding="ascii").strip()


def require_free(port: int) -> None:
    """Refuse a loopback port that someone listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "a port is a number from 1 to 65535"
            raise Invalid(
                f"port {port} on loopback cannot be used ({reason}); stop what listens there or set another one with "
                "KEYSTEAD_EMBEDDED_PORT"
            ) from None


def make_socket_path(directory: Path) -> Path:
    """Where the private socket goes: into the directory, or a private short one if the system's limit forbids that."""
    path = directory / _SOCKET_NAME
    if _fits(path):
        return path
    name = f"keystead-{os.geteuid()}-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]}"
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - checked below
        path = Path(parent or "/") / name / _SOCKET_NAME
        if parent and _fits(path) and _is_private(path.parent):
            return path
    raise Invalid(f"there is no private place for the socket of {directory}; name a shorter directory")


def remove_socket_path(directory: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    if path.parent != directory:
        path.parent.rmdir()


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _SOCKET_PATH_BYTES


def _is_private(directory: Path) -> bool:
    """Make the directory; false if someone else did before, or others can enter it."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        facts = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
