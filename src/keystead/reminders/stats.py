"""What is counted of daily reminders, of who wants them when, and the runs of their jobs."""

from itertools import permutations
from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.jobs import RunFacts
from keystead.keys import MapKey, RecordKey
from keystead.patterns import CANONICAL, DailyFamily
from keystead.reminders.keys import REMINDERS

_COUNTED: Final = ("reminders",)
_JOBS: Final = ("reminders.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

SENT = DailyFamily(
    REMINDERS, "daily_reminders",
    counts=("attempted", "overdue", "sends_attempted", "sends_lost", "links"),
    breakdowns={
        "skipped_assigning_time": "channel", "time_assigned": "channel", "skipped_sending": "channel",
        "sent": "channel",
    },
    held_days=3, zone=CANONICAL, table="daily_reminder_stats", chart="daily_reminders", home=LOS_ANGELES,
    purpose="reminders by the calendar day of their reader", writers=_COUNTED, readers=_SHOWN,
)

REGISTRATIONS = DailyFamily(
    REMINDERS, "daily_reminder_registrations",
    breakdowns={
        "subscribed": "channel:reason", "unsubscribed": "channel:reason",
    },
    held_days=1, zone=LOS_ANGELES, table="daily_reminder_registration_stats", chart="daily_reminder_registrations",
    purpose="who asked for reminders, and who for no more", writers=_COUNTED, readers=_SHOWN,
)

SETTINGS = DailyFamily(
    REMINDERS, "daily_reminder_settings",
    breakdowns=dict.fromkeys(("sms", "email", "push"), "days:time before|days:time after"),
    held_days=2, zone=LOS_ANGELES, table="daily_reminder_settings_stats",
    purpose="people who changed when they want reminders; the half that stayed the same is left empty",
    writers=_COUNTED, readers=_SHOWN,
)

PREFERENCES: Final = ("unset", "text-any", "text-morning", "text-afternoon", "text-evening")
PREFERENCE_COUNTS = MapKey(
    REMINDERS, "stats:user_notification_settings:counts", int, fields=PREFERENCES,
    purpose="how many people want to be written to when, as of now", writers=("reminders.preferences",),
    readers=_SHOWN,
)
PREFERENCE_CHANGES = DailyFamily(
    REMINDERS, "user_notification_settings", days="stats:daily_user_notification_settings",
    counts=tuple(f"{old}:{new}" for old, new in permutations(PREFERENCES, 2)),
    held_days=1, zone=LOS_ANGELES, table="user_notification_setting_stats", channel=None,
    columns=("old_preference", "new_preference"),
    purpose="people who changed when they want to be written to, from one wish to another",
    writers=("reminders.preferences",), readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class AssignRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that chooses a time for each reminder counts."""

    start_unix_date: int = 0
    end_unix_date: int = 0
    unique_timezones: int = 0
    pairs: int = 0
    queries: int = 0
    attempted: int = 0
    overdue: int = 0
    stale: int = 0
    sms_queued: int = 0
    push_queued: int = 0
    email_queued: int = 0


ASSIGN_RUN = RecordKey(
    REMINDERS, "stats:daily_reminders:assign_time_job", AssignRun,
    purpose="the last run of the job that chooses a time for each reminder; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class SendRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that sends reminders counts."""

    attempted: int = 0
    lost: int = 0
    stale: int = 0
    links: int = 0
    sms: int = 0
    push: int = 0
    email: int = 0


SEND_RUN = RecordKey(
    REMINDERS, "stats:daily_reminders:send_job", SendRun,
    purpose="the last run of the job that sends reminders; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
