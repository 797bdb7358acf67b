"""The tables are what the migration makes."""

from sqlalchemy import inspect, select, text

from keystead.messaging.touches import tables
from keystead.messaging.touches.latest import latest
from keystead.messaging.touches.models import DebugFields
from keystead.messaging.touches.tables import DEBUG_LOG, Fact
from keystead.store import Database

from .room import NOON, Room


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


async def test_facts_of_the_log_are_read_alike_by_both_databases(room: Room):
    await room.person("ada")
    failed = {"type": "send_unretryable", "info": {"identifier": "InternalError", "extra": 1}}
    await room.log.write([DebugFields("utbl_1", "tch_1", "ada", {"type": "send_attempt", "channel": "sms"}, NOON),
                          DebugFields("utbl_2", "tch_1", "ada", failed, NOON)])
    facts = select(Fact("channel"), Fact("type"), Fact("info.identifier"), Fact("none.at_all"))
    async with room.database.reading() as sql:
        rows = (await sql.execute(facts.select_from(DEBUG_LOG).order_by(DEBUG_LOG.c.id))).all()
    assert [tuple(row) for row in rows] == [
        ("sms", "send_attempt", None, None), (None, "send_unretryable", "InternalError", None)]


async def test_a_log_from_before_the_latest_were_listed_is_taken_over(room: Room):
    """Also rows that hold NUL, which PostgreSQL would not index; so many that pages of the table are full."""
    await room.person("ada")
    await room.log.write([DebugFields(f"utbl_{number}", f"tch_{number}", "ada",
                                      {"type": "send_attempt", "channel": "sms", "words": "NUL" + "x" * 900}, NOON)
                          for number in range(50)])
    async with room.database.transaction() as sql:
        await sql.execute(text("DROP INDEX user_touch_debug_log_listed"))
        await sql.execute(text("UPDATE store_migrations SET version_num = '0009'"))
        escaped = "replace(CAST(event AS text), 'NUL', '\\u0000')"
        value = f"CAST({escaped} AS json)" if sql.dialect.name == "postgresql" else escaped
        await sql.execute(text(f"UPDATE user_touch_debug_log SET event = {value}"))
    await room.database.migrate()
    found = await latest(room.valkey, room.database, most=100, channel="sms")
    assert [touch.uid for touch in found.touches] == [f"tch_{number}" for number in reversed(range(50))]
