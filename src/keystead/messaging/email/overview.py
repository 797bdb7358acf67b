"""What can be asked about email by those who look after it."""

from typing import Final

from keystead.messaging.email.keys import DAY_SECONDS, NEWS, RECEIPT_PENDING, SENDING
from keystead.messaging.email.stats import RECONCILIATION_RUN, SEND_RUN, STALE_RUN
from keystead.messaging.sending import Overview, WatchedRun, WatchedSet

OVERVIEW: Final = Overview(
    "email",
    lists={"send_queue_info": SENDING.waiting(), "event_queue_info": NEWS.queue},
    sets={"receipt_pending_set_info": WatchedSet(RECEIPT_PENDING.index, DAY_SECONDS)},
    runs={"last_send_job": WatchedRun(SEND_RUN, SENDING.work),
          "last_reconciliation_job": WatchedRun(RECONCILIATION_RUN, NEWS),
          "last_stale_receipt_job": WatchedRun(STALE_RUN)},
)
