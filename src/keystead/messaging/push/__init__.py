"""Push messages: queued, sent, and followed until their receipts are there."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.push.failures import Failures, Settled
    from keystead.messaging.push.gateway import ExpoGateway, Gateway
    from keystead.messaging.push.models import OutgoingPush, PushCheck, PushContents, PushFailure, PushSuccess
    from keystead.messaging.push.push import Push, check_contents
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "ExpoGateway",
    "Failures",
    "Gateway",
    "OutgoingPush",
    "Push",
    "PushCheck",
    "PushContents",
    "PushFailure",
    "PushSuccess",
    "Settled",
    "check_contents",
]
