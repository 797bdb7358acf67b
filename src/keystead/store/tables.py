"""The one description of all tables, which every room adds its own to, and the tables of the store itself."""

from sqlalchemy import BigInteger, Column, Double, Identity, Index, Integer, LargeBinary, MetaData, Table, Text, text

METADATA = MetaData()

# SQLite counts up by itself only a key that is called INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

# kind: job or announcement. queue, category, due_at: of a job; a named queue, the resources it needs if not the usual,
# the unix time from which it may run. channel, shard_channel: of an announcement; its names in the plain and in the
# tagged layout. failed_at, reason: set when it was found that the row cannot be delivered.
OUTBOX = Table(
    "store_outbox",
    METADATA,
    Column("number", _NUMBER, Identity(), primary_key=True),
    Column("uid", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("queue", Text, nullable=False, server_default=""),
    Column("category", Integer),
    Column("due_at", Double, nullable=False, server_default=text("0")),
    Column("channel", LargeBinary, nullable=False),
    Column("shard_channel", LargeBinary, nullable=False),
    Column("raw", LargeBinary, nullable=False),
    Column("written_at", Double, nullable=False),
    Column("failed_at", Double),
    Column("reason", Text, nullable=False, server_default=""),
    sqlite_autoincrement=True,
)
_WAITING, _FAILED = OUTBOX.c.failed_at.is_(None), OUTBOX.c.failed_at.is_not(None)
Index("store_outbox_waiting", OUTBOX.c.number, postgresql_where=_WAITING, sqlite_where=_WAITING)
Index("store_outbox_failed", OUTBOX.c.failed_at, postgresql_where=_FAILED, sqlite_where=_FAILED)
