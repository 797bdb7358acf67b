"""Reads that are asked for often, without what SQLAlchemy does for every statement.

It begins, wraps, translates and closes, which takes many times as long as SQLite takes to find a row. What it knows of
the tables is used all the same: it writes the statement, once, and says how values of columns are read.
"""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Dialect, Select

from keystead.store.sqlite_reader import Reader


@dataclass(frozen=True, slots=True)
class _Plan:
    """A statement as SQLite takes it: its values in order, and what is made of each column that is not as it comes."""

    sql: str
    names: tuple[str, ...]
    given: dict[str, Any]
    readers: tuple[tuple[int, Callable[[Any], Any]], ...]


class Query:
    """One SELECT, made once. What it is asked with are its ``bindparam``s: text and numbers. See ``Database.rows``."""

    def __init__(self, statement: Select[Any]) -> None:
        self.statement: Final = statement
        self._plan: _Plan | None = None

    def try_rows(self, reader: Reader, dialect: Dialect, values: Mapping[str, Any]) -> list[tuple[Any, ...]] | None:
        """Its rows, if that takes but a moment; otherwise None, also for any error."""
        plan = self._plan or self._planned(dialect)
        given = {**plan.given, **values} if plan.given else values
        parameters = [given[name] for name in plan.names]
        try:
            rows: list[tuple[Any, ...]] | None
            _, rows = reader.try_here(lambda: reader.plain.execute(plan.sql, parameters).fetchall())
        except (sqlite3.Error, ValueError):
            return None
        if rows and plan.readers:
            return [_read(row, plan.readers) for row in rows]
        return rows

    def _planned(self, dialect: Dialect) -> _Plan:
        compiled = self.statement.compile(dialect=dialect)
        names = tuple(compiled.positiontup or ())
        found = (
            (place, column.type.dialect_impl(dialect).result_processor(dialect, None))
            for place, column in enumerate(self.statement.selected_columns)
        )
        self._plan = _Plan(
            str(compiled), names, {name: value for name, value in compiled.params.items() if value is not None},
            tuple((place, read) for place, read in found if read is not None),
        )
        return self._plan


def _read(row: tuple[Any, ...], readers: tuple[tuple[int, Callable[[Any], Any]], ...]) -> tuple[Any, ...]:
    values = list(row)
    for place, read in readers:
        values[place] = read(values[place])
    return tuple(values)
