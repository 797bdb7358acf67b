"""People, their identities, visiting devices, campaigns and clicks."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def of(column: str, target: str) -> sa.Column[int]:
        return sa.Column(column, number, sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)

    op.create_table(
        "users",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("sub", sa.Text, nullable=False, unique=True),
        sa.Column("given_name", sa.Text, nullable=False, server_default=""),
        sa.Column("family_name", sa.Text, nullable=False, server_default=""),
        sa.Column("admin", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("timezone", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "user_identities",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        of("user_id", "users.id"),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("sub", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.UniqueConstraint("provider", "sub", name="user_identities_provider_sub"),
    )
    op.create_index("user_identities_user", "user_identities", ["user_id"])
    op.create_table(
        "visitors",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("version", sa.Integer, nullable=False, server_default="0"),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "visitor_users",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        of("user_id", "users.id"),
        of("visitor_id", "visitors.id"),
        sa.Column("first_seen_at", sa.Double, nullable=False),
        sa.Column("last_seen_at", sa.Double, nullable=False),
        sa.UniqueConstraint("user_id", "visitor_id", name="visitor_users_pair"),
    )
    op.create_index("visitor_users_visitor", "visitor_users", ["visitor_id"])
    op.create_table(
        "utms",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("canonical_query_param", sa.Text, nullable=False, unique=True),
        sa.Column("verified", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("utm_source", sa.Text, nullable=False),
        sa.Column("utm_medium", sa.Text),
        sa.Column("utm_campaign", sa.Text),
        sa.Column("utm_term", sa.Text),
        sa.Column("utm_content", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "visitor_utms",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of("visitor_id", "visitors.id"),
        of("utm_id", "utms.id"),
        sa.Column("clicked_at", sa.Double, nullable=False),
    )
    op.create_index("visitor_utms_visitor", "visitor_utms", ["visitor_id", "clicked_at"])
    op.create_index("visitor_utms_utm", "visitor_utms", ["utm_id"])
