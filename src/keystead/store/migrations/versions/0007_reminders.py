"""Daily reminders and the wishes they follow from."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def numbered() -> sa.Column[int]:
        return sa.Column("id", number, sa.Identity(), primary_key=True)

    def of_user() -> sa.Column[int]:
        return sa.Column("user_id", number, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False)

    op.create_table(
        "user_daily_reminders",
        numbered(),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of_user(),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("start_time", sa.Integer, nullable=False),
        sa.Column("end_time", sa.Integer, nullable=False),
        sa.Column("day_of_week_mask", sa.Integer, nullable=False),
        sa.Column("timezone", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.UniqueConstraint("user_id", "channel", name="user_daily_reminders_user_channel"),
    )
    op.create_index("user_daily_reminders_due", "user_daily_reminders", ["timezone", "start_time", "uid"])
    op.create_table(
        "user_daily_reminder_settings",
        numbered(),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of_user(),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("day_of_week_mask", sa.Integer, nullable=False),
        sa.Column("time_range", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.UniqueConstraint("user_id", "channel", name="user_daily_reminder_settings_user_channel"),
    )
    op.create_table(
        "daily_reminder_settings_log",
        numbered(),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        of_user(),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("day_of_week_mask", sa.Integer, nullable=False),
        sa.Column("time_range", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("daily_reminder_settings_log_user", "daily_reminder_settings_log", ["user_id", "created_at"])
    op.create_table(
        "user_daily_reminder_engaged",
        numbered(),
        of_user(),
        sa.Column("engaged", sa.Boolean, nullable=False),
        sa.UniqueConstraint("user_id", name="user_daily_reminder_engaged_user"),
    )
