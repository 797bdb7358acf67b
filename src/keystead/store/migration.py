"""The numbered line of migrations: each a step from one shape of the tables to the next, taken once."""

from pathlib import Path
from typing import Any, Final

from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from keystead.errors import Invalid

DIRECTORY: Final = Path(__file__).parent / "migrations"
VERSION_TABLE: Final = "store_migrations"
# Whoever migrates a PostgreSQL database holds this lock; any number will do that no other program takes.
_LOCK: Final = 0x6B657973


def line() -> list[Script]:
    """The migrations, oldest first."""
    return list(reversed(list(_scripts().walk_revisions())))


def missing(connection: Connection) -> int:
    """How many steps this database has not seen; all of them for one without tables."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    seen, steps = set(context.get_current_heads()), [script.revision for script in line()]
    newest = max((place for place, revision in enumerate(steps, 1) if revision in seen), default=0)
    return len(steps) - newest if newest or not seen else 0


def upgrade(connection: Connection) -> None:
    """Take the steps that this database has not seen, inside the transaction of the connection."""
    if connection.dialect.name == "postgresql":  # a writer of SQLite is alone anyhow
        connection.execute(text("SET LOCAL lock_timeout = 0"))  # whoever is before us may have much to do
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    scripts = _scripts()

    def steps(current: Any, context: MigrationContext) -> Any:
        return scripts._upgrade_revs("head", current)  # the way Alembic's own cookbook shows

    context = MigrationContext.configure(
        connection, opts={"fn": steps, "version_table": VERSION_TABLE, "transactional_ddl": True}
    )
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError as error:
        newest = line()[-1].revision
        found = ", ".join(context.get_current_heads())
        if found and found > newest:
            raise Invalid(
                f"the tables were brought to {found} by a newer Keystead, and this one knows them up to {newest}; "
                "start the newer version, or restore a backup from before"
            ) from None
        raise Invalid(f"the tables are at {found or 'no version'}, from which no way is known: {error}") from None


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(DIRECTORY).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)
