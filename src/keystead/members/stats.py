"""What is counted of people: how many there are, who is active, who comes back, from where they came."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.members.keys import MEMBERS
from keystead.patterns import Cohorts, DailyFamily, DayNumber, DaySet, MonthlyCounter, RowsByDay

_COUNTED: Final = ("members.counting",)
_ACTIVITY: Final = ("members.activity",)
_CONTACTS: Final = ("members.contacts",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

USERS = MonthlyCounter(
    MEMBERS, "stats:users", zone=LOS_ANGELES, purpose="people who ever joined", writers=_COUNTED, readers=_SHOWN,
)
NEW_USERS = DayNumber(
    MEMBERS, "stats:daily_new_users", zone=LOS_ANGELES, table="new_user_stats", purpose="people who joined, by day",
    writers=_COUNTED, readers=_SHOWN,
)
DAILY_ACTIVE = DaySet(
    MEMBERS, "stats:daily_active_users", zone=LOS_ANGELES, table="daily_active_user_stats", personal=True,
    purpose="people who were active, by day", writers=_ACTIVITY, readers=_SHOWN,
)
MONTHLY_ACTIVE = DaySet(
    MEMBERS, "stats:monthly_active_users", zone=LOS_ANGELES, monthly=True, table="monthly_active_user_stats",
    personal=True, purpose="people who were active, by month", writers=_ACTIVITY, readers=_SHOWN,
)
RETENTION = Cohorts(
    MEMBERS, "stats:retention", periods=(0, 1, 7, 30, 90), window_days=182, zone=LOS_ANGELES, table="retention_stats",
    personal=True, purpose="people by the day they joined, and whether they were active so many days later",
    writers=(*_COUNTED, *_ACTIVITY), readers=_SHOWN,
)
CONVERSION = RowsByDay(
    MEMBERS, rows="stats:visitors:daily:{unix_date}:utms", counts="stats:visitors:daily:{utm}:{unix_date}:counts",
    earliest="stats:visitors:daily:earliest", name="visitors", zone=LOS_ANGELES, table="daily_utm_conversion_stats",
    fields=(
        "visits", "holdover_preexisting", "holdover_last_click_signups", "holdover_any_click_signups", "preexisting",
        "last_click_signups", "any_click_signups",
    ),
    other="utm_source=other", purpose="visits and sign-ups by the campaign they came from", writers=_COUNTED,
    readers=_SHOWN,
)
PUSH_TOKENS = DailyFamily(
    MEMBERS, "push_tokens",
    counts=(
        "created", "reassigned", "refreshed", "deleted_due_to_user_deletion", "deleted_due_to_unrecognized_ticket",
        "deleted_due_to_unrecognized_receipt", "deleted_due_to_token_limit",
    ),
    held_days=1, zone=LOS_ANGELES, table="push_token_stats", rotates_at="00:15", gauges=("total",),
    purpose="devices that push messages can be sent to", writers=_CONTACTS, readers=_SHOWN,
)
CONTACT_METHODS = DailyFamily(
    MEMBERS, "contact_methods",
    breakdowns={
        "created": "channel:verified:enabled:reason", "deleted": "channel:reason", "verified": "channel:reason",
        "enabled_notifications": "channel:reason", "disabled_notifications": "channel:reason",
    },
    held_days=2, zone=LOS_ANGELES, table="contact_method_stats",
    purpose="addresses that people can be reached at", writers=_CONTACTS, readers=_SHOWN,
)
