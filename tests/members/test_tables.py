"""The room's tables: what the migrations made is what is described."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from keystead.members.contact_tables import USER_EMAIL_ADDRESSES
from keystead.members.tables import USERS
from keystead.store import Database

OURS = {
    "users", "user_identities", "visitors", "visitor_users", "utms", "visitor_utms", "user_email_addresses",
    "user_phone_numbers", "user_push_tokens", "suppressed_emails", "suppressed_phone_numbers", "email_failures",
    "unsubscribed_emails_log", "contact_method_log", "user_timezone_log",
}


async def test_migrated_tables_are_those_that_are_described(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={
            "compare_type": True,
            "include_name": lambda name, kind, parents: kind != "table" or name in OURS,
            "include_object": lambda item, name, kind, *_: kind != "table" or name in OURS,
        })
        return list(compare_metadata(context, USERS.metadata))

    assert set(USERS.metadata.tables) >= OURS and USER_EMAIL_ADDRESSES.name in OURS
    async with database.transaction() as sql:
        assert await sql.run_sync(differences) == []
