"""Store: the SQL database, its migrations, and what leaves with a transaction."""

from keystead.store.database import Database
from keystead.store.outbox import OutboxCounts, OutboxFailure, SqlOutbox
from keystead.store.tables import METADATA

__all__ = ["Database", "METADATA", "OutboxCounts", "OutboxFailure", "SqlOutbox"]
