"""Touch points, what was sent to whom, and the log of it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def of(column: str, target: str) -> sa.Column[int]:
        return sa.Column(column, number, sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)

    op.create_table(
        "touch_points",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("event_slug", sa.Text, nullable=False, unique=True),
        sa.Column("event_schema", sa.JSON, nullable=False),
        sa.Column("selection_strategy", sa.Text, nullable=False),
        sa.Column("messages", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "user_touch_point_states",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of("user_id", "users.id"),
        of("touch_point_id", "touch_points.id"),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("state", sa.JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.UniqueConstraint("user_id", "touch_point_id", "channel", name="user_touch_point_states_key"),
    )
    op.create_index("user_touch_point_states_touch_point", "user_touch_point_states", ["touch_point_id"])
    op.create_table(
        "user_touches",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("send_uid", sa.Text, nullable=False),
        of("user_id", "users.id"),
        sa.Column("channel", sa.Text, nullable=False),
        of("touch_point_id", "touch_points.id"),
        sa.Column("destination", sa.Text, nullable=False),
        sa.Column("message", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("user_touches_send_uid", "user_touches", ["send_uid"])
    op.create_index("user_touches_user", "user_touches", ["user_id", "created_at"])
    op.create_index("user_touches_touch_point", "user_touches", ["touch_point_id"])
    op.create_table(
        "user_touch_debug_log",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of("user_id", "users.id"),
        sa.Column("send_uid", sa.Text, nullable=False),
        sa.Column("event", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("user_touch_debug_log_user", "user_touch_debug_log", ["user_id", "created_at"])
    op.create_index("user_touch_debug_log_send_uid", "user_touch_debug_log", ["send_uid"])
