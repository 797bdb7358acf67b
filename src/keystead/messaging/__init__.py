"""Messaging: getting words to an address, over three channels and the touches above them."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.touches.door import Messaging
else:
    __getattr__ = opened_when_used(__name__)

__all__ = ["Messaging"]
