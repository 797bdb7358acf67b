"""The tables that statistics are rotated into: made from the declarations, and brought up to date with them.

They are not among the migrations of the store: a table follows from its declaration, and a new event is a new column.

==================  ==========================================================================================
``DailyFamily``     a row for each day: a column for each event, and ``<event>_breakdown`` with JSON, keys sorted;
                    with ``columns`` a row for each day and event that was counted, with its ``total``
``DaySet``          a row for each day (or month): ``total`` members, and how many came ``late``: they are not in total
``DayNumber``       the same; here what came late is in ``total``
``Cohorts``         a row for each day and period: ``retained``, ``unretained``, and members who joined too ``late``
``DimensionViews``  a row for each day and value: ``total_users``, ``total_views``, and of these views those that came
                    ``late``, whose people are in no total
``RowsByDay``       a row for each day and row, with its fields. The row is named in a column called as its variable
                    (``utm``); since names may be longer than an index takes, the pair that is there once is
                    ``<variable>_digest`` and the day
==================  ==========================================================================================

Days are ``YYYY-MM-DD`` in ``retrieved_for``, months ``YYYY-MM``.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Float,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.schema import CreateColumn
from sqlalchemy.types import TypeEngine

from keystead import dates
from keystead.dates import UnixDate, UnixMonth
from keystead.errors import DeclarationError, Invalid, NotFound
from keystead.patterns import Cohorts, DailyFamily, DimensionViews, RowsByDay
from keystead.stats.catalogue import Catalogue, Charted
from keystead.store import Database

# SQLite counts up by itself only a key that is called INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")
# Whoever makes tables in a PostgreSQL database holds this lock; any number will do that no other program takes.
_LOCK: Final = 0x6B737461
_LONGEST_NAME: Final = 63  # PostgreSQL cuts off the rest without a word, and would not find the column again


def label(day: int, *, monthly: bool = False) -> str:
    """How a day, or a month, is written in ``retrieved_for``."""
    if monthly:
        return f"{dates.unix_month_to_date(UnixMonth(day)):%Y-%m}"
    return dates.unix_date_to_date(UnixDate(day)).isoformat()


def is_count(table: Table, name: str) -> bool:
    """Whether a table has a column for counts of this name, be it of something that is declared no more."""
    column = table.c.get(name)
    return column is not None and isinstance(column.type, BigInteger) and not column.primary_key


class FamilyTables:
    """The tables of everything in a catalogue that has one. Making this object does nothing to a database."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.metadata = MetaData()
        self._tables: dict[str, Table] = {}
        #: Ids of rotations, and of late counts, that are in the tables; nothing is added twice under one id.
        self.applied = Table(
            "stats_applied", self.metadata,
            Column("id", Text, primary_key=True),
            Column("family", Text, nullable=False),
            Column("applied_at", Double, nullable=False),
        )
        Index("stats_applied_by_age", self.applied.c.family, self.applied.c.applied_at)
        for one in catalogue:
            if one.table is not None:
                self._add(one, one.table)

    def _add(self, one: Charted, name: str) -> None:
        if name in self.metadata.tables:
            raise DeclarationError(f"{one.name}: the table {name} belongs to something else; a table has one owner")
        key, columns = _shape(one)
        names = ["id", *(column.name for column in columns)]
        if twice := {each for each in names if sum(each.lower() == other.lower() for other in names) > 1}:
            raise DeclarationError(f"{one.name}: the table {name} would have the column {min(twice)} twice")
        if long := [each for each in (name, *names) if len(each.encode()) > _LONGEST_NAME]:
            raise DeclarationError(f"{one.name}: {long[0]} is too long for a table or a column; {_LONGEST_NAME} bytes")
        head = [Column("id", _NUMBER, Identity(), primary_key=True)]
        self._tables[one.name] = Table(
            name, self.metadata, *head, *columns, UniqueConstraint(*key), sqlite_autoincrement=True
        )

    def table(self, name: str) -> Table:
        """The table of what is called ``name`` in the catalogue. ``NotFound`` if it has none."""
        found = self._tables.get(name)
        if found is None:
            raise NotFound(f"{name[:100]} has no table; those that have one: {', '.join(sorted(self._tables))}")
        return found

    async def ensure(self, database: Database) -> None:
        """Make the tables and columns that are missing, in one transaction; drop nothing. Any number may do so at once.

        ``Invalid`` when a table of that name is there and its columns are of another kind: nothing is changed then.
        Columns of events that are declared no more stay, and are columns of ``table`` from now on: what is still
        counted for them has a place.
        """
        async with database.transaction() as sql:
            await sql.run_sync(self._ensure)

    def _ensure(self, connection: Connection) -> None:
        if connection.dialect.name == "postgresql":  # a writer of SQLite is alone anyhow
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        inspector = inspect(connection)
        found = inspector.get_multi_columns(filter_names=list(self.metadata.tables))
        there = {name: columns for (_, name), columns in found.items() if columns}
        for name, table in self.metadata.tables.items():
            if name in there:
                self._bring_up(connection, table, {column["name"]: column for column in there[name]})
        if there:
            unique = {name: _unique(inspector, name) for name in there}
            for name, known in unique.items():
                _check_unique(self.metadata.tables[name], known)
        self.metadata.create_all(connection, checkfirst=True)

    def _bring_up(self, connection: Connection, table: Table, there: dict[str, ReflectedColumn]) -> None:
        quoted = connection.dialect.identifier_preparer.format_table(table)
        for column in list(table.columns):
            known = there.get(column.name)
            if known is not None:
                if _kind(known["type"]) != _kind(column.type):
                    raise Invalid(
                        f"table {table.name}: its column {column.name} holds {_kind(known['type'])}, where "
                        f"{_kind(column.type)} belongs; rename or drop it, or name another table"
                    )
            elif column.primary_key or (column.server_default is None and not column.nullable):
                raise Invalid(f"table {table.name} is there and has no column {column.name}, so it is not one of ours; "
                              "rename it, or name another table")
            else:
                written = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {quoted} ADD COLUMN {written}")
        for name, known in there.items():
            if name not in table.c and isinstance(known["type"], Integer) and table is not self.applied:
                table.append_column(Column(name, BigInteger, nullable=known["nullable"]))


def _shape(one: Charted) -> tuple[tuple[str, ...], list[Column[Any]]]:
    """The columns by which a row is there once, and all columns but the id."""
    day = Column("retrieved_for", Text, nullable=False)
    at = Column("retrieved_at", Double, nullable=False)
    if isinstance(one, DailyFamily):
        if one.columns:
            return ("retrieved_for", *one.columns), [day, at, *map(_text, one.columns), _count("total")]
        breakdowns = [
            Column(f"{event}_breakdown", Text, nullable=False, server_default="{}") for event in one.breakdowns
        ]
        gauges = [Column(name, BigInteger) for name in one.gauges]
        return ("retrieved_for",), [day, at, *map(_count, one.events), *breakdowns, *gauges]
    if isinstance(one, Cohorts):
        period = Column("period_days", Integer, nullable=False)
        return ("period_days", "retrieved_for"), [period, day, at, *map(_count, ("retained", "unretained", "late"))]
    if isinstance(one, DimensionViews):
        counts = map(_count, ("total_users", "total_views", "late"))
        return (one.dimension, "retrieved_for"), [_text(one.dimension), day, at, *counts]
    if isinstance(one, RowsByDay):
        digest = f"{one.row_variable}_digest"
        columns = [_text(one.row_variable), _text(digest), day, at, *map(_count, one.fields)]
        return (digest, "retrieved_for"), columns
    return ("retrieved_for",), [day, at, _count("total"), _count("late")]


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _kind(of: TypeEngine[Any]) -> str:
    if isinstance(of, Integer):
        return "whole numbers"
    if isinstance(of, Numeric | Float):
        return "numbers"
    return "text" if isinstance(of, String) else str(of)


def _unique(inspector: Any, name: str) -> list[set[str]]:
    """The sets of columns by which rows of a table are there once."""
    constraints = [constraint["column_names"] for constraint in inspector.get_unique_constraints(name)]
    indexes = [index["column_names"] for index in inspector.get_indexes(name) if index["unique"]]
    return [set(columns) for columns in (*constraints, *indexes)]


def _check_unique(table: Table, known: list[set[str]]) -> None:
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            wanted = [column.name for column in constraint.columns]
            if set(wanted) not in known:
                raise Invalid(f"table {table.name} may hold several rows of one {', '.join(wanted)}; "
                              f"make a unique index on ({', '.join(wanted)}), or name another table")
