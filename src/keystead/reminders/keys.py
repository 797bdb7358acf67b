"""Every key of daily reminders. What is counted of them is in ``stats.py``."""

from typing import Final

from keystead.keys import (
    AtMost,
    FlagKey,
    IntegerKey,
    Keyspace,
    MapKey,
    RecordKey,
    SetKey,
    SortedSetKey,
    StringKey,
    Until,
)
from keystead.patterns import DelayedSet, SmartLock
from keystead.reminders.models import DueReminder, Progress

REMINDERS = Keyspace("reminders", tag="rem")

CHANNELS: Final = ("email", "push", "sms")
SENT_SECONDS: Final = 4 * 86400
# A job can be replayed by hand for thirty days; after twice that nobody counts the same thing again.
COUNTED_SECONDS: Final = 60 * 86400
_ASSIGNS: Final = ("reminders.assigner",)
_SENDS: Final = ("reminders.sender",)
_ROWS: Final = ("reminders.rows",)

# -- choosing a time --------------------------------------------------------------------------------------------------

PROGRESS: RecordKey[Progress] = RecordKey(
    REMINDERS, "daily_reminders:progress:{tz}:{unix_date}", Progress,
    purpose="how far the reminders of one day in one time zone have got their time", writers=_ASSIGNS, readers=_ASSIGNS,
    scripts=("reminders/advance.lua",),
)
ZONES: SortedSetKey[str] = SortedSetKey(
    REMINDERS, "daily_reminders:progress:timezones:{unix_date}", str, member="a time zone",
    score="its place, from 0", purpose="time zones whose reminders of one day get their time", writers=_ASSIGNS,
    readers=_ASSIGNS,
)
EARLIEST = IntegerKey(
    REMINDERS, "daily_reminders:progress:earliest", purpose="the first day that is still gone through",
    writers=_ASSIGNS, readers=_ASSIGNS, scripts=("reminders/open_day.lua", "reminders/close_day.lua"),
)
ASSIGN_LOCK = SmartLock(
    REMINDERS, "daily_reminders:assign_time_job_lock", purpose="one run at a time chooses times", writers=_ASSIGNS,
    readers=_ASSIGNS,
)

# -- sending ----------------------------------------------------------------------------------------------------------

QUEUED: DelayedSet[DueReminder] = DelayedSet(
    REMINDERS, "daily_reminders:queued", DueReminder, member="a reminder and its day",
    purgatory="daily_reminders:send_purgatory", purpose="reminders that have their time",
    writers=(*_ASSIGNS, *_SENDS, *_ROWS), readers=_SENDS,
)
SENT: SetKey[str] = SetKey(
    REMINDERS, "daily_reminders:sent:{unix_date}", str, member="uid of a reminder", ttl=AtMost(SENT_SECONDS),
    purpose="reminders of one day that were dealt with, so that an edited one is not sent again", writers=_SENDS,
    readers=(*_ASSIGNS, *_SENDS),
)
SEND_LOCK = SmartLock(
    REMINDERS, "daily_reminders:send_job_lock", purpose="one run at a time sends reminders", writers=_SENDS,
    readers=_SENDS,
)
SWAPS: SetKey[str] = SetKey(
    REMINDERS, "daily_reminders:swaps:{slug}:{channel}", str, member="sub of a person", ttl=Until(),
    personal=True, purpose="people who were given a one-off replacement of a reminder", writers=_SENDS, readers=_SENDS,
)

# -- who gets them ----------------------------------------------------------------------------------------------------

COUNTS: MapKey[int] = MapKey(
    REMINDERS, "daily_reminders:counts", int, fields=CHANNELS, purpose="how many reminders there are, by channel",
    writers=_ROWS, readers=(*_ROWS, "stats.charts"),
)
ROWS_COUNTED = FlagKey(
    REMINDERS, "daily_reminders:counted:{uid}", ttl=AtMost(COUNTED_SECONDS),
    purpose="changes of reminders of one transaction were counted, and are not to be counted again",
    writers=_ROWS, readers=_ROWS, scripts=("guarded/once.lua",),
)
IMPROVED_AT: StringKey[float] = StringKey(
    REMINDERS, "daily_reminder_settings_improved_at", float,
    purpose="when people could first say more than whether they want reminders; older wishes are asked for again",
    writers=("reminders.settings",), readers=("reminders.settings",),
)
