"""What can be asked about push messages by those who look after them."""

from typing import Final

from keystead.messaging.push.keys import COLD, HOT, SENDING
from keystead.messaging.push.stats import CHECK_RUN, COLD_TO_HOT_RUN, SEND_RUN
from keystead.messaging.sending import Overview, WatchedRun, WatchedSet

OVERVIEW: Final = Overview(
    "notifs",
    lists={"send_queue_info": SENDING.waiting(), "receipt_hot_set_info": HOT.queue},
    sets={"receipt_cold_set_info": WatchedSet(COLD.at())},
    runs={"last_send_job": WatchedRun(SEND_RUN, SENDING.work),
          "last_cold_to_hot_job": WatchedRun(COLD_TO_HOT_RUN),
          "last_check_job": WatchedRun(CHECK_RUN, HOT)},
)
