"""A process that dies between any two steps, whether the step goes to Valkey, to SQL or to the object files.

Each step is a place to die before and a place to die after; within a transaction, before the commit and after it. What
is left is what a killed process leaves behind.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.engine import Valkey
from keystead.engine.scripts import Script
from keystead.keys import Layout
from keystead.store import Database
from keystead.store.files import DEFAULT_CONTENT_TYPE, ObjectFiles

from ..patterns.crash import Died


class Fate:
    """Dies at the ``at``-th place."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.dead = False

    def place(self) -> None:
        if self.dead:
            raise Died
        self._left -= 1
        if self._left == 0:
            self.dead = True
            raise Died

    async def around(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self.place()
        found = await call()
        self.place()
        return found


def fates(most: int = 300) -> Iterator[Fate]:
    """Fates that strike ever later. Stop when one did not (``not fate.dead``)."""
    for at in range(1, most):
        yield Fate(at)
    raise AssertionError(f"the operation did not end within {most} places")


class MortalValkey:
    """Commands and scripts."""

    def __init__(self, valkey: Valkey, fate: Fate) -> None:
        self._valkey, self._fate = valkey, fate

    @property
    def layout(self) -> Layout:
        return self._valkey.layout

    def run(self, command: Any, decode: Callable[[Any], Any], *, repeat: bool = False) -> Awaitable[Any]:
        return self._fate.around(lambda: self._valkey.run(command, decode, repeat=repeat))

    def run_block(
        self, commands: Sequence[Any], decode: Callable[[Any], Any], *, repeat: bool = False
    ) -> Awaitable[Any]:
        return self._fate.around(lambda: self._valkey.run_block(commands, decode, repeat=repeat))

    def run_script(self, script: Script, rest: tuple[Any, ...], decode: Callable[[Any], Any]) -> Awaitable[Any]:
        return self._fate.around(lambda: self._valkey.run_script(script, rest, decode))


class MortalDatabase:
    """Transactions: dies before the first statement, before the commit, after the commit."""

    def __init__(self, database: Database, fate: Fate) -> None:
        self._database, self._fate = database, fate
        self.insert, self.insert_many, self.dialect = database.insert, database.insert_many, database.dialect
        self.after_commit = database.after_commit

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        async with self._database.transaction() as sql:
            self._fate.place()
            yield sql
            self._fate.place()
        self._fate.place()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        self._fate.place()
        async with self._database.reading() as sql:
            yield sql


class MortalFiles:
    """Objects: dies before a write, while bytes come, when it has appeared, before and after a deletion."""

    def __init__(self, objects: ObjectFiles, fate: Fate) -> None:
        self._objects, self._fate = objects, fate
        self.bucket, self.read, self.keys, self.size = objects.bucket, objects.read, objects.keys, objects.size

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], *, content_type: str = DEFAULT_CONTENT_TYPE
    ) -> int:
        async def coming() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                self._fate.place()
                yield chunk

        return int(await self._fate.around(lambda: self._objects.write(key, coming(), content_type=content_type)))

    async def delete(self, key: str) -> None:
        await self._fate.around(lambda: self._objects.delete(key))
