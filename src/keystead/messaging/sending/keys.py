"""The keys that the channels share. Those of one channel are declared by it, through ``Channel``."""

from typing import Final

from keystead.jobs import JobOutbox
from keystead.keys import AtMost, IntegerKey, Keyspace, ListKey
from keystead.messaging.sending.models import TraceEntry

SENDING = Keyspace("messaging.sending", tag="msg", laned=True)

TRACE_SECONDS: Final = 7 * 86400
_STEPS: Final = ("messaging.push", "messaging.sms", "messaging.email", "messaging.touches", "messaging.sending")

TRACE: ListKey[TraceEntry] = ListKey(
    SENDING, "msg:trace:{uid}", TraceEntry, ttl=AtMost(TRACE_SECONDS),
    purpose="the steps in the life of one message, oldest first", writers=_STEPS, readers=("messaging.sending.trace",),
)

LANES: IntegerKey = IntegerKey(
    SENDING, "msg:lanes", tag="msg", writers=("messaging.sending.lanes",), readers=("messaging.sending.lanes",),
    purpose="how many lanes all processes of a cluster agree on; one server has no such key",
)

JOBS_OUTBOX = JobOutbox(SENDING, "outbox", writers=_STEPS)
