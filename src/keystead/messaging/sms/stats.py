"""What is counted of texts: sending, polling, events, webhooks, and the runs of their jobs."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.jobs import RunFacts
from keystead.keys import RecordKey
from keystead.messaging.sms.keys import SMS
from keystead.messaging.webhooks import WEBHOOK_EVENTS, WEBHOOK_IDENTITIES, WEBHOOK_KEPT_SECONDS
from keystead.patterns import DailyFamily

_COUNTED: Final = ("messaging.sms",)
_JOBS: Final = ("messaging.sms.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

SENDS = DailyFamily(
    SMS, "sms_send",
    counts=(
        "queued", "retried", "abandoned", "failed_due_to_client_error_429", "failed_due_to_internal_error",
        "failed_due_to_network_error",
    ),
    breakdowns={
        "succeeded_pending": "message status", "succeeded_immediate": "message status",
        "failed_due_to_application_error_ratelimit": "error code",
        "failed_due_to_application_error_other": "error code", "failed_due_to_client_error_other": "HTTP status",
        "failed_due_to_server_error": "HTTP status",
    },
    held_days=2, zone=LOS_ANGELES, table="sms_send_stats", channel="ps:stats:sms_sends:daily",
    chart="daily_sms_sends",
    purpose="texts handed to the provider", writers=_COUNTED, readers=_SHOWN,
)

POLLING = DailyFamily(
    SMS, "sms_polling",
    counts=("attempted", "error_client_404", "error_client_429", "error_network", "error_internal"),
    breakdowns={
        "detected_stale": "message status", "queued_for_recovery": "number of failures before",
        "abandoned": "number of failures before", "received": "old:new status", "error_client_other": "HTTP status",
        "error_server": "HTTP status",
    },
    held_days=2, zone=LOS_ANGELES, table="sms_polling_stats",
    purpose="texts whose status was asked for because no news came", writers=_COUNTED, readers=_SHOWN,
)

EVENTS = DailyFamily(
    SMS, "sms_events",
    counts=("found",),
    breakdowns={
        "attempted": "message status", "received_via_webhook": "message status",
        "received_via_polling": "message status", "pending": "message status", "succeeded": "message status",
        "failed": "message status", "duplicate": "message status", "unknown": "message status",
        "updated": "old:new status", "removed": "old:new status", "out_of_order": "stored:event status",
    },
    held_days=2, zone=LOS_ANGELES, table="sms_event_stats",
    identities=(
        "found + unknown = attempted",
        "updated + duplicate + out_of_order + removed = found",
        "received_via_webhook + received_via_polling = attempted",
        "pending + succeeded + failed = attempted",
    ),
    purpose="news of texts, and what became of it", writers=_COUNTED, readers=_SHOWN,
)

WEBHOOKS = DailyFamily(
    SMS, "sms_webhooks",
    counts=WEBHOOK_EVENTS, identities=WEBHOOK_IDENTITIES, held_days=2, zone=LOS_ANGELES,
    kept_seconds=WEBHOOK_KEPT_SECONDS,
    purpose="calls of the text provider", writers=_COUNTED, readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class SendRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that sends texts counts."""

    attempted: int = 0
    pending: int = 0
    succeeded: int = 0
    failed_permanently: int = 0
    failed_transiently: int = 0


SEND_RUN = RecordKey(
    SMS, "stats:sms_send:send_job", SendRun,
    purpose="the last run of the job that sends texts; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class StaleRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that finds texts without news counts."""

    callbacks_queued: int = 0


STALE_RUN = RecordKey(
    SMS, "stats:sms:receipt_stale_job", StaleRun,
    purpose="the last run of the job that finds texts without news; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class RecoveryRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that asks what became of texts counts."""

    attempted: int = 0
    pending: int = 0
    succeeded: int = 0
    failed: int = 0
    lost: int = 0
    permanent_error: int = 0
    transient_error: int = 0


RECOVERY_RUN = RecordKey(
    SMS, "stats:sms:receipt_recovery_job", RecoveryRun,
    purpose="the last run of the job that asks what became of texts; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class ReconciliationRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that works off news of texts counts."""

    attempted: int = 0
    pending: int = 0
    succeeded: int = 0
    failed: int = 0
    found: int = 0
    updated: int = 0
    duplicate: int = 0
    out_of_order: int = 0
    removed: int = 0


RECONCILIATION_RUN = RecordKey(
    SMS, "stats:sms:receipt_reconciliation_job", ReconciliationRun,
    purpose="the last run of the job that works off news of texts; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
