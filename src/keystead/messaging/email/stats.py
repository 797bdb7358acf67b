"""What is counted of email: sending, events, webhooks, and the runs of their jobs."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.jobs import RunFacts
from keystead.keys import RecordKey
from keystead.messaging.email.keys import EMAIL
from keystead.messaging.webhooks import WEBHOOK_EVENTS, WEBHOOK_IDENTITIES, WEBHOOK_KEPT_SECONDS
from keystead.patterns import DailyFamily

_COUNTED: Final = ("messaging.email",)
_JOBS: Final = ("messaging.email.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

SENDS = DailyFamily(
    EMAIL, "email_send",
    counts=("queued", "attempted", "templated", "retried", "abandoned"),
    breakdowns={
        "accepted": "template", "failed_permanently": "template or ses:error",
        "failed_transiently": "template or ses:error",
    },
    held_days=2, zone=LOS_ANGELES, table="email_send_stats",
    purpose="email handed to the provider", writers=_COUNTED, readers=_SHOWN,
)

WEBHOOKS = DailyFamily(
    EMAIL, "email_webhooks",
    counts=WEBHOOK_EVENTS, identities=WEBHOOK_IDENTITIES, held_days=2, zone=LOS_ANGELES,
    kept_seconds=WEBHOOK_KEPT_SECONDS,
    purpose="calls of the email provider", writers=_COUNTED, readers=_SHOWN,
)

EVENTS = DailyFamily(
    EMAIL, "email_events",
    breakdowns={
        "attempted": "found or abandoned", "succeeded": "found or abandoned",
        "bounced": "found or abandoned:type:subtype", "complaint": "found or abandoned:feedback type",
    },
    held_days=2, zone=LOS_ANGELES, table="email_event_stats",
    identities=(
        "succeeded + bounced + complaint = attempted",
    ),
    purpose="news of email, and what became of it", writers=_COUNTED, readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class SendRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that sends email counts."""

    attempted: int = 0
    templated: int = 0
    accepted: int = 0
    failed_permanently: int = 0
    failed_transiently: int = 0


SEND_RUN = RecordKey(
    EMAIL, "stats:email_send:send_job", SendRun,
    purpose="the last run of the job that sends email; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class ReconciliationRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that works off news of email counts."""

    attempted: int = 0
    succeeded_and_found: int = 0
    succeeded_but_abandoned: int = 0
    bounced_and_found: int = 0
    bounced_but_abandoned: int = 0
    complaint_and_found: int = 0
    complaint_and_abandoned: int = 0


RECONCILIATION_RUN = RecordKey(
    EMAIL, "stats:email_events:reconciliation_job", ReconciliationRun,
    purpose="the last run of the job that works off news of email; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class StaleRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that gives up on email without news counts."""

    abandoned: int = 0


STALE_RUN = RecordKey(
    EMAIL, "stats:email_events:stale_receipt_job", StaleRun,
    purpose="the last run of the job that gives up on email without news; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
