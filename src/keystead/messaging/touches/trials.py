"""Trying a message out: made of given parameters, and sent to addresses of the person who tries it."""

from collections.abc import Mapping
from typing import Any, Final

from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.messaging.touches.door import Messaging
from keystead.messaging.touches.messages import EmailMessage, Message, PushMessage, SmsMessage, rendered
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.outlets import Outlets

MOST_ADDRESSES: Final = 3


class Trials:
    """Sends messages that belong to no touch: nothing is logged or remembered of them."""

    def __init__(self, messaging: Messaging, outlets: Outlets) -> None:
        self._messaging, self._outlets = messaging, outlets

    async def send(self, user_sub: UserSub, message: Message, parameters: Mapping[str, Any]) -> list[str]:
        """Send to at most three addresses of the person; gives the uids. ``NotFound`` if they have none."""
        channel, words = _channel(message), rendered(message, parameters).shown
        addresses = (await self._outlets[channel].addresses([user_sub])).get(user_sub)
        if not addresses:
            raise NotFound(f"the person cannot be reached on {channel}: there is no verified, enabled address")
        return [await self._send(channel, address, words, user_sub) for address in addresses[:MOST_ADDRESSES]]

    async def _send(self, channel: Channel, address: str, words: Mapping[str, Any], user: str) -> str:
        match channel:
            case "sms":
                return await self._messaging.text(address, words["body"], user=user)
            case "push":
                return await self._messaging.push(address, words["title"], words["body"],
                                                  channel_id=words["channel_id"], user=user)
            case "email":
                return await self._messaging.email(address, words["subject"], words["template"],
                                                   words["template_parameters"], user=user)


def _channel(message: Message) -> Channel:
    match message:
        case SmsMessage():
            return "sms"
        case PushMessage():
            return "push"
        case EmailMessage():
            return "email"
