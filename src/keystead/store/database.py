"""The database: connections, transactions, and the few statements that differ between SQLite and PostgreSQL."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, Final, Self, cast

from sqlalchemy import Connection, Table, event, literal, text
from sqlalchemy.dialects import postgresql as postgresql_dialect
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from keystead.errors import Invalid, KeysteadError, ReplyLost, Unavailable
from keystead.store import sqlite
from keystead.store.address import Address, Dialect, parse_address
from keystead.store.failures import ends_transaction, hide_values, meaning
from keystead.store.query import Query
from keystead.store.sqlite_reader import Reader

WAIT_SECONDS: Final = 30.0
# Rows of one statement: enough that the round trip does not count, few enough that memory does not either.
STEP_ROWS: Final = 1000

Insert = sqlite_dialect.Insert | postgresql_dialect.Insert


class Database:
    """Tables by URL: SQLite or PostgreSQL behind one face. Made by ``open``.

    A statement that finds the database away, locked for too long or out of resources raises ``Unavailable``, wherever
    it stands; a wrong setup raises ``Invalid``; errors of the statement itself stay those of SQLAlchemy
    (``IntegrityError``). No message holds a password or the value of a parameter.
    """

    def __init__(
        self, address: Address, writing: AsyncEngine, reading: AsyncEngine, wait_seconds: float,
        quick: Reader | None = None,
    ) -> None:
        self._address, self._quick = address, quick
        self._writing = writing
        self._reading = reading
        self._wait_seconds = wait_seconds
        # SQLite has one writer. Ours queue here, first come first served, instead of trying again and again.
        self._turn = asyncio.Lock() if self.dialect == "sqlite" else None
        self._writers: set[asyncio.Task[Any] | None] = set()
        self._after: dict[AsyncConnection, list[Callable[[], None]]] = {}
        # Connections that are in use, each with the error of the first statement on it that failed.
        self._spoiled: dict[Connection, Exception | None] = {}
        for engine in (writing, reading):
            event.listen(engine.sync_engine, "handle_error", self._meaning_of)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, wait_seconds: float = WAIT_SECONDS) -> AsyncIterator[Self]:
        """Connect for as long as the block runs: ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST/DATABASE``.

        A SQLite file that does not exist is made, with its directory. ``wait_seconds``: how long anything waits for a
        lock or a free connection. A URL that cannot be used, a wrong password, a missing database: ``Invalid`` that
        says what to do; a server that does not answer: ``Unavailable``.
        """
        address = parse_address(url)
        engines = _engines(address, wait_seconds)
        quick = None
        if address.dialect == "sqlite":
            await asyncio.to_thread(_prepare, address, wait_seconds)
            quick = await sqlite.open_quick(address.path)
        database = cls(address, *engines, wait_seconds, quick)
        try:
            async with database.reading() as sql:  # a wrong password shows now, and not at the first request
                await sql.execute(text("SELECT 1"))
            yield database
        finally:
            if quick is not None:
                quick.stop()
            for engine in engines:
                await engine.dispose()

    @property
    def dialect(self) -> Dialect:
        return self._address.dialect

    @property
    def shown(self) -> str:
        """How messages speak of this database; without a password."""
        return self._address.shown

    # -- transactions -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A block whose changes all happen, when it ends, or none, when it raises or the process dies.

        On SQLite it may write from the start and no other writer runs beside it, so keep it short and await nothing
        slow in it. On PostgreSQL it is read committed. ``Unavailable`` means that nothing was changed, except for
        ``ReplyLost``: the connection broke during the commit, which may or may not have happened.

        A statement that failed spoils the whole block, also if the caller went on: it then raises at its end. One that
        may fail is put into ``async with sql.begin_nested()``, which undoes just that.
        """
        task = asyncio.current_task()
        if task in self._writers:
            raise Invalid("a transaction is open in this task; hand its connection on instead of opening another")
        async with self._our_turn(task), self._connected(self._writing) as sql:
            await sql.begin()
            after = self._after[sql] = []
            try:
                yield sql
                await self._commit(sql)
            finally:
                del self._after[sql]
        for each in after:
            each()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A block that only reads, and sees the database as it was at its first statement. Never waits for writers."""
        async with self._connected(self._reading) as sql:
            yield sql

    async def rows(self, query: Query, **values: str | float) -> Sequence[tuple[Any, ...]]:
        """The rows of one SELECT that is asked for often; as a block of ``reading`` would find them, at less cost."""
        if self._quick is not None:
            rows = query.try_rows(self._quick, self._reading.dialect, values)
            if rows is not None:
                return rows
        async with self.reading() as sql:
            return [tuple(row) for row in await sql.execute(query.statement, values)]

    def after_commit(self, sql: AsyncConnection, call: Callable[[], None]) -> None:
        """Call a function once the transaction of this connection has been committed; never if it has not.

        The process may die in between, so it can only hasten what happens anyhow. It must not raise.
        """
        if sql not in self._after:
            raise Invalid("this connection is in no transaction of the database; take it from database.transaction()")
        self._after[sql].append(call)

    async def migrate(self) -> None:
        """Bring the tables to what this version of Keystead needs, in one transaction. Any number may do so at once.

        ``Invalid`` when the database was brought further by a newer version.
        """
        try:
            from keystead.store.migration import upgrade  # who only uses tables that are there need not have Alembic
        except ImportError:
            raise Invalid("making the tables needs another package: pip install 'keystead[sql]'") from None
        async with self.transaction() as sql:
            await sql.run_sync(upgrade)

    async def missing_steps(self) -> int:
        """How many steps of the tables this database has not seen; 0 once ``migrate`` was done, or by a newer one."""
        from keystead.store.migration import missing

        async with self.reading() as sql:
            return await sql.run_sync(missing)

    # -- statements -------------------------------------------------------------------------------------------------

    def insert(self, table: Table) -> Insert:
        """The dialect's own INSERT, with ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
        return sqlite_dialect.insert(table) if self.dialect == "sqlite" else postgresql_dialect.insert(table)

    async def insert_many(
        self, sql: AsyncConnection, table: Table, rows: Iterable[Mapping[str, Any]], *, ignore_conflicts: bool = False
    ) -> int:
        """Insert rows, all with the same columns, and say how many were inserted.

        ``ignore_conflicts``: a row whose key is there already is left out. Rows are read as they are sent, a thousand
        at a time, so there may be any number of them.
        """
        plain = self.insert(table)
        ignoring = plain.on_conflict_do_nothing().returning(literal(1))
        count = 0
        for step in _steps(table, rows):
            if ignore_conflicts:
                count += len((await sql.execute(ignoring, step)).all())
            else:
                await sql.execute(plain, step)
                count += len(step)
        return count

    async def add_many(
        self, sql: AsyncConnection, table: Table, rows: Iterable[Mapping[str, Any]], *, keys: Sequence[str],
        add: Sequence[str],
    ) -> None:
        """Insert rows, or add the columns ``add`` to those of the row that has the same ``keys``.

        ``keys`` are the columns of a primary key or unique index; those of ``add`` must not hold NULL. Rows are
        sorted by their keys, so that two who add to the same rows do not lock each other out.
        """
        statement = self.insert(table)
        adding = statement.on_conflict_do_update(
            index_elements=list(keys), set_={name: table.c[name] + statement.excluded[name] for name in add}
        )
        in_order = sorted(rows, key=lambda row: [row[key] for key in keys])
        for step in _steps(table, in_order):
            await sql.execute(adding, step)

    # -- inside -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _our_turn(self, task: asyncio.Task[Any] | None) -> AsyncIterator[None]:
        if self._turn is not None:
            try:
                async with asyncio.timeout(self._wait_seconds):
                    await self._turn.acquire()
            except TimeoutError:
                raise Unavailable(f"{self.shown} is busy: too many of this process wait to write") from None
        self._writers.add(task)
        try:
            yield
        finally:
            self._writers.discard(task)
            if self._turn is not None:
                self._turn.release()

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        sql = engine.connect()
        try:
            await sql.start()
        except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
            raise meaning(getattr(error, "orig", error), self._address, lost=True) or error from None
        except (OverflowError, ValueError):  # a port or a name that can be none
            raise Invalid(f"{self.shown} cannot be reached by this URL; check its host and port") from None
        connection = cast(Connection, sql.sync_connection)
        self._spoiled[connection] = None
        try:
            yield sql
        finally:
            del self._spoiled[connection]
            # One that broke cannot be given back and was thrown away. That must not stand before how the block ended:
            # least of all before its cancellation, which whoever tries again after Unavailable would not notice.
            with contextlib.suppress(KeysteadError, SQLAlchemyError, OSError):
                if self.dialect == "sqlite" and engine is self._reading:
                    # At once, and so cannot be cancelled. Any step of its own would keep one of few connections for a
                    # whole turn of the loop, which is long when very many read at once.
                    await sql.close()
                else:
                    # Undoes what was not committed: also when this task is cancelled meanwhile.
                    await asyncio.shield(sql.close())

    async def _commit(self, sql: AsyncConnection) -> None:
        failed = self._spoiled.get(cast(Connection, sql.sync_connection))
        if failed is not None:
            # PostgreSQL would answer such a commit with a quiet rollback, SQLite would keep the rest.
            if isinstance(failed, KeysteadError):
                raise failed
            raise Invalid(
                f"a statement of this transaction failed ({type(failed).__name__}), so none of it is kept; "
                "put one that may fail into: async with sql.begin_nested()"
            )
        try:
            await sql.commit()
        except (Unavailable, SQLAlchemyError) as error:
            # Refused, and with SQLite still open. Giving the connection back takes it for over, unless it is told.
            await sql.rollback()
            if not isinstance(error, Unavailable) or self.dialect == "sqlite" or _is_answer(error.__cause__):
                raise
            raise ReplyLost(f"{error}, during a commit: it may or may not have happened") from error.__cause__

    def _meaning_of(self, context: ExceptionContext) -> KeysteadError | None:
        error = context.original_exception
        if not isinstance(error, Exception):  # a cancelled task
            return None
        if ends_transaction(error):
            context.is_disconnect, context.invalidate_pool_on_disconnect = True, False
        found = meaning(error, self._address, lost=context.is_disconnect)
        if found is None:
            hide_values(error, context.sqlalchemy_exception)
        connection = context.connection
        if connection is None or self._spoiled.get(connection, error) is not None:
            return found  # none yet, or one that is being given back, or one that is spoiled already
        if context.is_disconnect or not connection.in_nested_transaction():
            self._spoiled[connection] = found or error
        return found


def _is_answer(error: BaseException | None) -> bool:
    """Whether the server itself refused the commit, as opposed to a connection that broke."""
    code = getattr(error, "sqlstate", None) or ""
    return bool(code) and code[:2] not in ("08", "57")


def _engines(address: Address, wait_seconds: float) -> tuple[AsyncEngine, AsyncEngine]:
    """One for writing and one for reading. Drivers are only needed by those who use them."""
    try:
        if address.dialect == "sqlite":
            return sqlite.engines(address.path, wait_seconds)
        from keystead.store import postgresql

        return postgresql.engines(address.dsn, wait_seconds)
    except ImportError:
        extra = "sql" if address.dialect == "sqlite" else "postgres"
        raise Invalid(f"{address.shown} needs another package: pip install 'keystead[{extra}]'") from None


def _prepare(address: Address, wait_seconds: float) -> None:
    try:
        sqlite.prepare(address.path, wait_seconds)
    except OSError as error:
        raise Invalid(f"{address.shown} cannot be made: {error.strerror}; check the path and its rights") from None
    except sqlite3.Error as error:
        raise meaning(error, address) or error from None


def _steps(table: Table, rows: Iterable[Mapping[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Rows in lists of a thousand; all must have the columns of the first, since a statement is made for those."""
    columns: set[str] | None = None
    left = iter(rows)
    while step := [dict(row) for row in islice(left, STEP_ROWS)]:
        columns = columns or set(step[0])
        if unknown := columns - set(table.c.keys()):
            raise Invalid(f"table {table.name} has no column {', '.join(sorted(unknown))}")
        for row in step:
            if row.keys() != columns:
                odd = ", ".join(sorted(row.keys() ^ columns))
                raise Invalid(f"table {table.name}: rows of one insert have the same columns, but not all have {odd}")
        yield step
