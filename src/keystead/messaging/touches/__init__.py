"""Touches: a person is told of an event over whatever channel reaches them, and somebody hears whether it arrived."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.touches.dispatcher_plan import Planner
    from keystead.messaging.touches.door import Messaging
    from keystead.messaging.touches.erased import Erased, Erasure
    from keystead.messaging.touches.handlers import Handlers
    from keystead.messaging.touches.history import History, PastTouch
    from keystead.messaging.touches.latest import LatestTouch, LatestTouches
    from keystead.messaging.touches.log import TouchLog
    from keystead.messaging.touches.models import CHANNELS, Channel, Touch, TouchUid
    from keystead.messaging.touches.outlets import Outlets
    from keystead.messaging.touches.outlets_email import EmailOutlet
    from keystead.messaging.touches.outlets_push import PushOutlet
    from keystead.messaging.touches.outlets_sms import SmsOutlet
    from keystead.messaging.touches.pending import Pending
    from keystead.messaging.touches.points import TouchPoint, TouchPoints
    from keystead.messaging.touches.queues import QueueInfo, Queues
    from keystead.messaging.touches.touches import Touches
    from keystead.messaging.touches.tracing import TraceEvent, Tracer
    from keystead.messaging.touches.trials import Trials
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "CHANNELS",
    "Channel",
    "EmailOutlet",
    "Erased",
    "Erasure",
    "Handlers",
    "History",
    "LatestTouch",
    "LatestTouches",
    "Messaging",
    "Outlets",
    "PastTouch",
    "Pending",
    "Planner",
    "PushOutlet",
    "QueueInfo",
    "Queues",
    "SmsOutlet",
    "Touch",
    "TouchLog",
    "TouchPoint",
    "TouchPoints",
    "TouchUid",
    "Touches",
    "TraceEvent",
    "Tracer",
    "Trials",
]
