"""What is counted of touches, and the runs of their jobs."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.jobs import RunFacts
from keystead.keys import RecordKey
from keystead.messaging.touches.keys import TOUCHES
from keystead.patterns import DailyFamily

_COUNTED: Final = ("messaging.touches",)
_JOBS: Final = ("messaging.touches.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

SENDS = DailyFamily(
    TOUCHES, "touch_send",
    counts=("queued", "stale"),
    breakdowns={
        "attempted": "event:channel", "improper": "event:channel", "reachable": "event:channel:count",
        "unreachable": "event:channel",
    },
    held_days=2, zone=LOS_ANGELES, table="touch_send_stats",
    identities=(
        "reachable + unreachable + improper + stale = attempted",
    ),
    purpose="touches and whether their people could be reached", writers=_COUNTED, readers=_SHOWN,
)

STALE = DailyFamily(
    TOUCHES, "touch_stale",
    counts=("stale",),
    held_days=2, zone=LOS_ANGELES, table="touch_stale_stats",
    purpose="touches that nothing was heard of", writers=_COUNTED, readers=_SHOWN,
)

DROPS = DailyFamily(
    TOUCHES, "touch_drops",
    breakdowns={
        "daily_cap": "event:channel", "quiet_hours": "event:channel", "same_content": "event:channel",
        "erased": "event:channel",
    },
    held_days=2, zone=LOS_ANGELES, table="touch_drop_stats",
    purpose="touches that people were spared, by why; each also counts as unreachable", writers=_COUNTED,
    readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class SendRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that sends touches counts."""

    attempted: int = 0
    touch_points: int = 0
    attempted_sms: int = 0
    attempted_push: int = 0
    attempted_email: int = 0
    improper_sms: int = 0
    improper_push: int = 0
    improper_email: int = 0
    reachable_sms: int = 0
    reachable_push: int = 0
    reachable_email: int = 0
    unreachable_sms: int = 0
    unreachable_push: int = 0
    unreachable_email: int = 0
    stale: int = 0


SEND_RUN = RecordKey(
    TOUCHES, "stats:touch_send:send_job", SendRun,
    purpose="the last run of the job that sends touches; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class LogRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that writes the log of touches counts."""

    inserts: int = 0
    updates: int = 0
    full_batch_inserts: int = 0
    full_batch_updates: int = 0
    partial_batch_inserts: int = 0
    partial_batch_updates: int = 0
    accepted_inserts: int = 0
    accepted_updates: int = 0
    failed_inserts: int = 0
    failed_updates: int = 0


LOG_RUN = RecordKey(
    TOUCHES, "stats:touch_log:log_job", LogRun,
    purpose="the last run of the job that writes the log of touches; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class DetectionRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that finds touches without news counts."""

    stale: int = 0


DETECTION_RUN = RecordKey(
    TOUCHES, "stats:touch_stale:detection_job", DetectionRun,
    purpose="the last run of the job that finds touches without news; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
