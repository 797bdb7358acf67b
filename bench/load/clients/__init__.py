"""One module per client library, each with the same shape, so that the loops know none of them.

A module offers ``open_client(url, tasks, cluster)``, an async context manager that yields a ``Client``. Only the module
of the client under test is imported, since the libraries live in different environments.
"""

import importlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, cast

from bench.load.loops import Call

SCRIPT_FILE = "scripts/increment.lua"


class Client(Protocol):
    """What a library must be able to do to take part. Each method prepares one call; the loop only awaits it."""

    facts: dict[str, object]

    def get(self, key: str) -> Call: ...

    def set(self, key: str, value: bytes) -> Call: ...

    def script(self, key: str) -> Call:
        """Call the increment script by its hash with a step of one."""
        ...

    def pipeline(self, keys: Sequence[str]) -> Call:
        """Read all ``keys`` with one GET each, sent together, not as a transaction."""
        ...


def open_client(name: str, url: str, tasks: int, *, cluster: bool) -> AbstractAsyncContextManager[Client]:
    """Connect with the library ``name`` (a module of this package), ready for ``tasks`` callers at once."""
    module = importlib.import_module(f"{__name__}.{name}")
    return cast(AbstractAsyncContextManager[Client], module.open_client(url, tasks, cluster))


def script_text() -> str:
    """The script that every library calls."""
    return (Path(__file__).parent.parent / SCRIPT_FILE).read_text(encoding="utf-8")


def address(url: str) -> tuple[str, int]:
    """Host and port, for libraries that do not take a URL."""
    host, _, port = url.partition("://")[2].split(",")[0].rstrip("/").rpartition(":")
    return host, int(port)
