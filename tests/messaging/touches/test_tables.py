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


async def test_touches_of_a_touch_point_are_found_by_time(database: Database):
    """The heat map of reminders asks for those of the last weeks."""

    def indexes(connection):
        return [tuple(index["column_names"]) for index in inspect(connection).get_indexes("user_touches")]

    async with database.reading() as sql:
        found = await sql.run_sync(indexes)
    assert ("touch_point_id", "created_at") in found and ("touch_point_id",) not in found
