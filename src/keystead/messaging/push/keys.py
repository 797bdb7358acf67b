"""Every key of push messages. What is counted of them is in ``stats.py``."""

from typing import Final

from keystead.keys import Keyspace, Personal, SortedSetKey
from keystead.messaging.push.models import OutgoingPush, PushCheck
from keystead.messaging.sending import Channel
from keystead.patterns import SmartLock, WorkList

PUSH = Keyspace("messaging.push", tag="msg", laned=True)

_ROOM: Final = ("messaging.push",)
_RECEIPTS: Final = ("messaging.push.receipts",)
_PERSON: Final = Personal(field="user_sub")

# -- on the way to the provider ----------------------------------------------------------------------------------------

SENDING: Channel[OutgoingPush] = Channel(
    PUSH, "push", queue="push:message_attempts:to_send", of=OutgoingPush, purgatory="push:message_attempts:purgatory",
    lock="push:send_job:lock", personal=_PERSON, purpose="push messages to be sent", writers=_ROOM,
    readers=("messaging.push.sender",),
)

# -- taken by the provider ---------------------------------------------------------------------------------------------

HOT: WorkList[PushCheck] = WorkList(
    PUSH, "push:push_tickets:hot", PushCheck, purgatory="push:push_tickets:purgatory", personal=_PERSON,
    purpose="tickets whose receipt is to be asked for now", writers=_ROOM, readers=_RECEIPTS,
)
COLD: SortedSetKey[PushCheck] = SortedSetKey(
    PUSH, "push:push_tickets:cold", PushCheck, member="a ticket",
    score="unix time from which the wait for its receipt counts", personal=_PERSON,
    purpose="tickets whose receipt cannot be there yet", writers=_ROOM, readers=_RECEIPTS,
    scripts=("delayed/move_due.lua",), dead_letter=HOT.dead_key,
)
COLD_LOCK = SmartLock(
    PUSH, "push:ticket_hot_to_cold:lock", purpose="one run at a time finds receipts to ask for", writers=_RECEIPTS,
    readers=_RECEIPTS,
)
CHECK_LOCK = SmartLock(
    PUSH, "push:check_job:lock", purpose="one run at a time asks for receipts", writers=_RECEIPTS, readers=_RECEIPTS,
)
