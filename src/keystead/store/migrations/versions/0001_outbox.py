"""The outbox: jobs and announcements that leave when their transaction has been committed."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "store_outbox",
        sa.Column("number", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("queue", sa.Text, nullable=False, server_default=""),
        sa.Column("category", sa.Integer),
        sa.Column("due_at", sa.Double, nullable=False, server_default=sa.text("0")),
        sa.Column("channel", sa.LargeBinary, nullable=False),
        sa.Column("shard_channel", sa.LargeBinary, nullable=False),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sa.Column("written_at", sa.Double, nullable=False),
        sa.Column("failed_at", sa.Double),
        sa.Column("reason", sa.Text, nullable=False, server_default=""),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "store_outbox_waiting", "store_outbox", ["number"],
        postgresql_where=sa.text("failed_at IS NULL"), sqlite_where=sa.text("failed_at IS NULL"),
    )
    op.create_index(
        "store_outbox_failed", "store_outbox", ["failed_at"],
        postgresql_where=sa.text("failed_at IS NOT NULL"), sqlite_where=sa.text("failed_at IS NOT NULL"),
    )
