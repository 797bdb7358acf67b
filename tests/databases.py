"""Databases for the tests: a PostgreSQL server out of a wheel, and new databases on it for little."""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from keystead.store import Database


def migrated(url: str) -> None:
    """Make all tables there, and close it."""

    async def migrate() -> None:
        async with Database.open(url) as database:
            await database.migrate()

    # In a thread: the first to ask may be a test that runs on an event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, migrate()).result()


class PostgreSQL:
    """A running server. It ends with the last process that uses its directory."""

    def __init__(self, directory: Path) -> None:
        self._server = _started(directory)
        self._names = (f"test_{os.getpid()}_{number}" for number in itertools.count())
        # No test takes the power away, so nothing need reach the disk.
        self.run("ALTER SYSTEM SET fsync = off")
        self.run("SELECT pg_reload_conf()")

    def run(self, statement: str) -> str:
        return str(self._server.psql(statement))

    def url(self, database: str) -> str:
        return str(self._server.get_uri(database))

    def with_password(self, user: str, password: str) -> None:
        """Make a user who is let in by a password only."""
        self.run(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
        rules = Path(self._server.pgdata, "pg_hba.conf")
        rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
        self.run("SELECT pg_reload_conf()")

    @cached_property
    def template(self) -> str:
        """The name of a database with all tables, of which copies are made."""
        name = next(self._names)
        self.run(f"CREATE DATABASE {name}")
        migrated(self.url(name))
        return name

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of a new database, for as long as the block runs."""
        name = next(self._names)
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


def _started(directory: Path) -> Any:
    import pgserver  # loads slowly, and only some tests need it

    directory.mkdir(exist_ok=True)
    for _ in range(5):
        try:
            return pgserver.get_server(directory, cleanup_mode="delete")
        except subprocess.SubprocessError:  # it is given ten seconds to start, which a busy machine may not keep
            pgserver.PostgresServer._instances.pop(directory.resolve(), None)
    raise AssertionError("PostgreSQL did not start")
