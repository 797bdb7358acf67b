"""Writes of SQLite, in a thread of their own: one step to it and back for each statement, and one for the commit.

A busy event loop lets go of the interpreter only every few milliseconds, so each of these steps takes a while, and
everybody else who wants to write waits meanwhile. The usual driver takes four for a statement.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

from keystead.store.sqlite_reader import Reader

THREAD_NAME: Final = "keystead-sqlite-writer"

T = TypeVar("T")
_Settle = Callable[[Any, BaseException | None], None]


async def open_writer(database: str, *, timeout: float, isolation_level: None, **_: object) -> "Writer":
    """As the driver connects."""
    return Writer(await asyncio.to_thread(
        sqlite3.connect, database, timeout=timeout, isolation_level=isolation_level, check_same_thread=False
    ), timeout)


class Writer(Reader):
    """A connection with the interface of the driver for the event loop. One task uses it at a time.

    What was begun in the thread ends there, also if whoever waits for it is cancelled; what is asked of the connection
    afterwards comes after it.
    """

    def __init__(self, connection: sqlite3.Connection, wait_seconds: float) -> None:
        super().__init__(connection, wait_seconds)
        self._under_way = 0
        self._asked: SimpleQueue[tuple[Callable[[], Any], _Settle] | None] = SimpleQueue()
        Thread(target=self._work, name=THREAD_NAME, daemon=True).start()

    async def commit(self) -> None:
        await self.in_thread(self.plain.commit)

    async def rollback(self) -> None:
        if self._under_way or self.plain.in_transaction:
            await self.in_thread(self.plain.rollback)

    async def run(self, cursor: sqlite3.Cursor, sql: str, parameters: Sequence[Any]) -> list[Any] | None:
        return await self.in_thread(lambda: cursor.execute(sql, parameters).fetchall())

    def leave(self, cursor: sqlite3.Cursor) -> None:
        if self._under_way:  # by somebody who was cancelled: the thread may be using it
            self._ask(cursor.close, lambda result, error: None)
        else:
            cursor.close()

    async def close(self) -> None:
        """Returns when it is closed: the last one to do so leaves everything in the one file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await self.in_thread(connection.close)
            finally:
                self._asked.put(None)

    def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._asked.put((connection.close, lambda result, error: None))
            self._asked.put(None)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run it after what was asked for before."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if answer.done():  # nobody waits any more
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        self._ask(work, settle)
        return await answer

    def _ask(self, work: Callable[[], Any], settle: _Settle) -> None:
        loop = asyncio.get_running_loop()

        def done(result: Any, error: BaseException | None) -> None:
            self._under_way -= 1
            settle(result, error)

        def tell(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(done, result, error)

        self._under_way += 1
        self._asked.put((work, tell))

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            work, tell = asked
            result = None
            try:
                result = work()
            except BaseException as error:  # whatever it is, whoever waits must hear of it
                tell(None, error)
            else:
                tell(result, None)
            del asked, work, tell, result  # until the next one comes, nothing is held
