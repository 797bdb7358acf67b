"""Trackable links and clicks on them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "user_touch_links",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("user_touch_id", number, sa.ForeignKey("user_touches.id", ondelete="CASCADE"), nullable=False),
        sa.Column("code", sa.Text, nullable=False, unique=True),
        sa.Column("page_identifier", sa.Text, nullable=False),
        sa.Column("page_extra", sa.JSON, nullable=False),
        sa.Column("preview_identifier", sa.Text, nullable=False),
        sa.Column("preview_extra", sa.JSON, nullable=False),
    )
    op.create_index("user_touch_links_touch", "user_touch_links", ["user_touch_id"])
    op.create_table(
        "user_touch_link_clicks",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column(
            "user_touch_link_id", number, sa.ForeignKey("user_touch_links.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("track_type", sa.Text, nullable=False),
        sa.Column("parent_id", number, sa.ForeignKey("user_touch_link_clicks.id", ondelete="SET NULL"), unique=True),
        sa.Column("user_id", number, sa.ForeignKey("users.id", ondelete="SET NULL")),
        sa.Column("visitor_id", number, sa.ForeignKey("visitors.id", ondelete="SET NULL")),
        sa.Column("parent_known", sa.Boolean, nullable=False),
        sa.Column("user_known", sa.Boolean, nullable=False),
        sa.Column("visitor_known", sa.Boolean, nullable=False),
        sa.Column("child_known", sa.Boolean, nullable=False),
        sa.Column("clicked_at", sa.Double, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("user_touch_link_clicks_link", "user_touch_link_clicks", ["user_touch_link_id"])
    op.create_index("user_touch_link_clicks_user", "user_touch_link_clicks", ["user_id"])
    op.create_index("user_touch_link_clicks_visitor", "user_touch_link_clicks", ["visitor_id"])
