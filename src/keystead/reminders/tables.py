"""The rows of reminders: who is written to when, what they wished, and whether they take part."""

from sqlalchemy import Boolean, Column, Double, Index, Integer, Table, Text, UniqueConstraint

from keystead.members.tables import numbered, of
from keystead.store import METADATA

# start_time, end_time: seconds after local midnight. day_of_week_mask: bit 0 is Sunday. timezone: the person's, or the
# default one; kept here so that one index gives the rows of a zone in the order in which they are due.
REMINDERS = Table(
    "user_daily_reminders",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("user_id", "users.id"),
    Column("channel", Text, nullable=False),
    Column("start_time", Integer, nullable=False),
    Column("end_time", Integer, nullable=False),
    Column("day_of_week_mask", Integer, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("user_id", "channel", name="user_daily_reminders_user_channel"),
    Index("user_daily_reminders_due", "timezone", "start_time", "uid"),
)

# time_range: JSON, {"type": "preset", "preset": ...} or {"type": "explicit", "start": ..., "end": ...}.
SETTINGS = Table(
    "user_daily_reminder_settings",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("user_id", "users.id"),
    Column("channel", Text, nullable=False),
    Column("day_of_week_mask", Integer, nullable=False),
    Column("time_range", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("user_id", "channel", name="user_daily_reminder_settings_user_channel"),
)

# reason: JSON, who changed it and how.
SETTINGS_LOG = Table(
    "daily_reminder_settings_log",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("user_id", "users.id"),
    Column("channel", Text, nullable=False),
    Column("day_of_week_mask", Integer, nullable=False),
    Column("time_range", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("daily_reminder_settings_log_user", "user_id", "created_at"),
)

ENGAGED = Table(
    "user_daily_reminder_engaged",
    METADATA,
    numbered(),
    of("user_id", "users.id"),
    Column("engaged", Boolean, nullable=False),
    UniqueConstraint("user_id", name="user_daily_reminder_engaged_user"),
)
