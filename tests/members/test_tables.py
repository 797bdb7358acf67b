"""The room's tables: what the migrations made is what is described."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from keystead.members.tables import USERS
from keystead.store import Database

OURS = {"users", "user_identities", "visitors", "visitor_users", "utms", "visitor_utms"}


async def test_migrated_tables_are_those_that_are_described(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={
            "compare_type": True,
            "include_name": lambda name, kind, parents: kind != "table" or name in OURS,
            "include_object": lambda item, name, kind, *_: kind != "table" or name in OURS,
        })
        return list(compare_metadata(context, USERS.metadata))

    assert set(USERS.metadata.tables) >= OURS
    async with database.transaction() as sql:
        assert await sql.run_sync(differences) == []
