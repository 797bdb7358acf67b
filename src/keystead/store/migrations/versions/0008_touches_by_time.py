"""Touches of some touch points since a moment are found without looking at the older ones."""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_index("user_touches_touch_point_time", "user_touches", ["touch_point_id", "created_at"])
    op.drop_index("user_touches_touch_point", "user_touches")
