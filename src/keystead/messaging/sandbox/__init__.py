"""Providers that speak the real protocols and deliver to nobody."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.sandbox.models import CHANNELS, Channel, Faults, Message
    from keystead.messaging.sandbox.outbox import Outbox, Recipient
    from keystead.messaging.sandbox.sandbox import Sandbox
    from keystead.messaging.sandbox.serving import serving
    from keystead.messaging.sandbox.twilio import Account
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Account",
    "CHANNELS",
    "Channel",
    "Faults",
    "Message",
    "Outbox",
    "Recipient",
    "Sandbox",
    "serving",
]
