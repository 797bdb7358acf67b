"""What is counted of trackable links, and the runs of their jobs."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.jobs import RunFacts
from keystead.keys import RecordKey
from keystead.messaging.links.keys import LINKS
from keystead.patterns import DailyFamily

_COUNTED: Final = ("messaging.links",)
_JOBS: Final = ("messaging.links.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

LINKS_COUNTED = DailyFamily(
    LINKS, "touch_links",
    counts=(
        "created", "persist_queue_attempts", "persisted_in_failed_batch", "click_attempts",
        "persisted_clicks_in_failed_batch", "persist_click_failed", "delayed_clicks_attempted",
        "delayed_clicks_delayed", "abandons_attempted",
    ),
    breakdowns={
        "persist_queue_failed": "page:reason", "persists_queued": "page", "persisted": "page",
        "persists_failed": "reason", "clicks_buffered": "track type:page:visitor:user",
        "clicks_direct_to_db": "track type:page:visitor:user", "clicks_delayed": "track type:page:visitor:user",
        "clicks_failed": "reason", "persisted_clicks": "page:number of clicks",
        "delayed_clicks_persisted": "track type:page:visitor:user", "delayed_clicks_failed": "reason",
        "abandoned": "page:number of clicks", "abandon_failed": "reason", "leaked": "outcome",
    },
    held_days=2, zone=LOS_ANGELES, table="touch_link_stats",
    identities=(
        "persist_queue_failed + persists_queued = persist_queue_attempts",
        "clicks_buffered + clicks_direct_to_db + clicks_delayed + clicks_failed = click_attempts",
        "delayed_clicks_persisted + delayed_clicks_delayed + delayed_clicks_failed = delayed_clicks_attempted",
        "abandoned + abandon_failed = abandons_attempted",
    ),
    purpose="trackable links and their clicks", writers=_COUNTED, readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class PersistRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that stores links counts."""

    attempted: int = 0
    lost: int = 0
    integrity_error: int = 0
    persisted: int = 0
    persisted_without_clicks: int = 0
    persisted_with_one_click: int = 0
    persisted_with_multiple_clicks: int = 0


PERSIST_RUN = RecordKey(
    LINKS, "stats:touch_links:persist_link_job", PersistRun,
    purpose="the last run of the job that stores links; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class LeakRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that finds links nobody stored counts."""

    leaked: int = 0
    recovered: int = 0
    abandoned: int = 0


LEAK_RUN = RecordKey(
    LINKS, "stats:touch_links:leaked_link_detection_job", LeakRun,
    purpose="the last run of the job that finds links nobody stored; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class DelayedClicksRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that stores clicks on links that were not stored yet counts."""

    attempted: int = 0
    persisted: int = 0
    delayed: int = 0
    lost: int = 0
    duplicate: int = 0


DELAYED_CLICKS_RUN = RecordKey(
    LINKS, "stats:touch_links:delayed_clicks_persist_job", DelayedClicksRun,
    purpose="the last run of the job that stores clicks on links that were not stored yet; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
