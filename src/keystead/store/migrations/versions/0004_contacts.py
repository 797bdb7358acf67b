"""Addresses of people, devices that take push messages, and who must not be written to."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def of(column: str, target: str) -> sa.Column[int]:
        return sa.Column(column, number, sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)

    op.create_table(
        "user_email_addresses",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        of("user_id", "users.id"),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False),
        sa.Column("verified", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("receives_notifications", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.UniqueConstraint("user_id", "folded", name="user_email_addresses_pair"),
    )
    op.create_index("user_email_addresses_folded", "user_email_addresses", ["folded"])
    op.create_table(
        "user_phone_numbers",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        of("user_id", "users.id"),
        sa.Column("phone_number", sa.Text, nullable=False),
        sa.Column("verified", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("receives_notifications", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.UniqueConstraint("user_id", "phone_number", name="user_phone_numbers_pair"),
    )
    op.create_index("user_phone_numbers_number", "user_phone_numbers", ["phone_number"])
    op.create_table(
        "user_push_tokens",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of("user_id", "users.id"),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False, unique=True),
        sa.Column("receives_notifications", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("last_seen_at", sa.Double, nullable=False),
        sa.Column("last_confirmed_at", sa.Double),
    )
    op.create_index("user_push_tokens_user", "user_push_tokens", ["user_id", "last_seen_at"])
    op.create_table(
        "suppressed_emails",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("email_address", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False, unique=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "suppressed_phone_numbers",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("phone_number", sa.Text, nullable=False, unique=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("reason_details", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "email_failures",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("email_address", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False),
        sa.Column("failure_type", sa.Text, nullable=False),
        sa.Column("failure_extra", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("email_failures_folded", "email_failures", ["folded", "created_at"])
    op.create_table(
        "unsubscribed_emails_log",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("link_code", sa.Text, nullable=False),
        sa.Column("visitor_id", number, sa.ForeignKey("visitors.id", ondelete="SET NULL")),
        sa.Column("visitor_known", sa.Boolean, nullable=False),
        sa.Column("email_address", sa.Text, nullable=False),
        sa.Column("suppressed", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("unsubscribed_emails_log_visitor", "unsubscribed_emails_log", ["visitor_id"])
    op.create_table(
        "contact_method_log",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of("user_id", "users.id"),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("identifier", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("reason", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("contact_method_log_user", "contact_method_log", ["user_id", "created_at"])
    op.create_table(
        "user_timezone_log",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of("user_id", "users.id"),
        sa.Column("timezone", sa.Text, nullable=False),
        sa.Column("technique", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("user_timezone_log_user", "user_timezone_log", ["user_id", "created_at"])
