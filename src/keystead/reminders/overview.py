"""What can be asked about reminders by those who look after them."""

from typing import Final

from keystead.messaging.sending import Overview, WatchedRun, WatchedSet
from keystead.reminders.keys import QUEUED
from keystead.reminders.stats import ASSIGN_RUN, SEND_RUN

OVERVIEW: Final = Overview(
    "daily_reminders",
    sets={"queued_info": WatchedSet(QUEUED.due, 0.0)},
    runs={"last_assign_time_job": WatchedRun(ASSIGN_RUN), "last_send_job": WatchedRun(SEND_RUN, QUEUED)},
)
