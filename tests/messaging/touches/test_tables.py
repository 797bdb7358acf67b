"""The tables are what the migration makes."""

from sqlalchemy import inspect

from keystead.messaging.touches import tables
from keystead.store import Database


async def test_tables_and_migration_agree(database: Database):
    ours = (tables.TOUCH_POINTS, tables.STATES, tables.USER_TOUCHES, tables.DEBUG_LOG)

    def columns(connection):
        seen = inspect(connection)
        return {table.name: {(column["name"], column["nullable"]) for column in seen.get_columns(table.name)}
                for table in ours}

    async with database.reading() as sql:
        found = await sql.run_sync(columns)
    assert found == {table.name: {(column.name, bool(column.nullable)) for column in table.columns} for table in ours}
