"""What can be asked about texts by those who look after them."""

from typing import Final

from keystead.messaging.sending import Overview, WatchedRun, WatchedSet
from keystead.messaging.sms.keys import NEWS, PENDING, RECOVERY, SENDING
from keystead.messaging.sms.stats import RECONCILIATION_RUN, RECOVERY_RUN, SEND_RUN, STALE_RUN

OVERVIEW: Final = Overview(
    "sms",
    lists={"send_queue_info": SENDING.waiting(), "event_queue_info": NEWS.queue,
           "recovery_queue_info": RECOVERY.queue},
    sets={"pending_set_info": WatchedSet(PENDING.index, 0.0)},
    runs={"last_send_job": WatchedRun(SEND_RUN, SENDING.work),
          "last_receipt_stale_detection_job": WatchedRun(STALE_RUN),
          "last_receipt_recovery_job": WatchedRun(RECOVERY_RUN, RECOVERY),
          "last_receipt_reconciliation_job": WatchedRun(RECONCILIATION_RUN, NEWS)},
)
