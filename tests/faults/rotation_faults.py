"""One who rotates and dies: between any two calls to Valkey, and between any two statements of SQL."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from keystead.store import Database
from tests.patterns.crash import Mortal


class MortalDatabase:
    """A database whose user dies with ``mortal``. Statements count as calls, and so do the two sides of a commit."""

    def __init__(self, database: Database, mortal: Mortal) -> None:
        self._database, self._mortal = database, mortal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        async with self._database.transaction() as sql:
            yield _MortalConnection(sql, self._mortal)
            await self._mortal._mortally(_nothing)  # who dies here never commits
        await self._mortal._mortally(_nothing)


class _MortalConnection:
    """The connection of a transaction. Dying in it undoes it, as it does when the process is gone."""

    def __init__(self, sql: Any, mortal: Mortal) -> None:
        self._sql, self._mortal = sql, mortal

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._sql, name)
        return lambda *arguments, **named: self._mortal._mortally(lambda: call(*arguments, **named))


async def _nothing() -> None:
    return None
