"""Providers that speak the real protocols and deliver to nobody."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.sandbox.caller import text_us
    from keystead.messaging.sandbox.faults import FaultBoard
    from keystead.messaging.sandbox.ledger import Ledger
    from keystead.messaging.sandbox.models import CHANNELS, Channel, Faults, Message
    from keystead.messaging.sandbox.outbox import Outbox, Recipient
    from keystead.messaging.sandbox.sandbox import Sandbox
    from keystead.messaging.sandbox.sns import CERTIFICATE_PATH, TOPIC_ARN
    from keystead.messaging.sandbox.twilio import Account
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Account",
    "CERTIFICATE_PATH",
    "CHANNELS",
    "Channel",
    "FaultBoard",
    "Faults",
    "Ledger",
    "Message",
    "Outbox",
    "Recipient",
    "Sandbox",
    "TOPIC_ARN",
    "text_us",
]
