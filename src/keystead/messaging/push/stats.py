"""What is counted of push messages: tickets, receipts, and the runs of their jobs."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.jobs import LastRunFacts
from keystead.keys import RecordKey
from keystead.messaging.push.keys import PUSH
from keystead.patterns import DailyFamily

_COUNTED: Final = ("messaging.push",)
_JOBS: Final = ("messaging.push.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

TICKETS = DailyFamily(
    PUSH, "push_tickets",
    counts=(
        "queued", "retried", "succeeded", "abandoned", "failed_due_to_device_not_registered",
        "failed_due_to_client_error_429", "failed_due_to_client_error_other", "failed_due_to_server_error",
        "failed_due_to_internal_error", "failed_due_to_network_error",
    ),
    held_days=2, zone=LOS_ANGELES, table="push_ticket_stats", rotates_at="00:15",
    purpose="push messages handed to the provider", writers=_COUNTED, readers=_SHOWN,
)

RECEIPTS = DailyFamily(
    PUSH, "push_receipts",
    counts=(
        "succeeded", "retried", "abandoned", "failed_due_to_device_not_registered", "failed_due_to_message_too_big",
        "failed_due_to_message_rate_exceeded", "failed_due_to_mismatched_sender_id",
        "failed_due_to_invalid_credentials", "failed_due_to_not_ready_yet", "failed_due_to_client_error_429",
        "failed_due_to_client_error_other", "failed_due_to_server_error", "failed_due_to_internal_error",
        "failed_due_to_network_error",
    ),
    held_days=2, zone=LOS_ANGELES, table="push_receipt_stats", rotates_at="00:15",
    purpose="what the provider says became of push messages", writers=_COUNTED, readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class TicketSendRun(LastRunFacts, frozen=True, kw_only=True):
    """What a run of the job that sends push messages counts."""

    num_messages_attempted: int = 0
    num_succeeded: int = 0
    num_failed_permanently: int = 0
    num_failed_transiently: int = 0


SEND_RUN = RecordKey(
    PUSH, "stats:push_tickets:send_job", TicketSendRun,
    purpose="the last run of the job that sends push messages; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class ColdToHotRun(LastRunFacts, frozen=True, kw_only=True):
    """What a run of the job that finds receipts to ask for counts."""

    num_moved: int = 0


COLD_TO_HOT_RUN = RecordKey(
    PUSH, "stats:push_receipts:cold_to_hot_job", ColdToHotRun,
    purpose="the last run of the job that finds receipts to ask for; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)


class ReceiptCheckRun(LastRunFacts, frozen=True, kw_only=True):
    """What a run of the job that asks for receipts counts."""

    num_checked: int = 0
    num_succeeded: int = 0
    num_failed_permanently: int = 0
    num_failed_transiently: int = 0


CHECK_RUN = RecordKey(
    PUSH, "stats:push_receipts:check_job", ReceiptCheckRun,
    purpose="the last run of the job that asks for receipts; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
