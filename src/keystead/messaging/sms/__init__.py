"""Text messages: queued, sent, followed until they are settled; and texts that people send us."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.sms.failures import Failures, Settled
    from keystead.messaging.sms.gateway import Gateway, TwilioGateway
    from keystead.messaging.sms.inbound import Inbound
    from keystead.messaging.sms.models import OutgoingSms, SmsFailure, SmsSuccess
    from keystead.messaging.sms.sms import Sms, SmsState
    from keystead.messaging.sms.suppressed import Suppressed
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Failures",
    "Gateway",
    "Inbound",
    "OutgoingSms",
    "Settled",
    "Sms",
    "SmsFailure",
    "SmsState",
    "SmsSuccess",
    "Suppressed",
    "TwilioGateway",
]
