"""What each person would have received: for a page, for tests, for whoever wants to look."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, cast

from keystead.engine import Valkey
from keystead.messaging.sandbox.keys import COUNTS, INBOX, MESSAGE, MESSAGES, RECIPIENTS, TAKEN
from keystead.messaging.sandbox.models import CHANNELS, Channel, Message

_BATCH: Final = 500
_MOST_LOOKED_AT: Final = 5000
_NUMBERED: Final = "all:numbered"


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody who was written to, on one channel."""

    channel: Channel
    address: str
    last_at: float
    messages: int


@dataclass(frozen=True, slots=True)
class Feed:
    """Messages in the order in which they were taken, each with its number. Ask for more after ``last``."""

    messages: tuple[tuple[int, Message], ...]
    last: int


class Outbox:
    """Reads what lies in the server; it does not matter which process took it."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def recipients(self, *, most: int = 200, channel: Channel | None = None, like: str = "") -> list[Recipient]:
        """Who was written to, the latest first. ``like``: part of the address, in any case."""
        scored = await RECIPIENTS.at().range(self._valkey, 0, -1 if channel or like else most - 1, descending=True)
        wanted = [(recipient, at) for recipient, at in scored
                  if _channel_of(recipient) in ((channel,) if channel else CHANNELS)
                  and like.lower() in recipient.partition(":")[2].lower()][:most]
        if not wanted:
            return []
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for recipient, _ in wanted:
                INBOX.at(recipient).size(pipeline)
            sizes = await pipeline.execute()
        return [Recipient(_channel_of(recipient), recipient.partition(":")[2], at, size)
                for (recipient, at), size in zip(wanted, sizes, strict=True)]

    async def messages(self, channel: Channel, address: str, *, most: int = 50) -> list[Message]:
        """What one recipient got, newest first."""
        ids = await INBOX.at(f"{channel}:{address}").range(self._valkey, 0, most - 1, descending=True)
        return await self._found([id for id, _ in ids])

    async def feed(
        self, after: int = 0, *, most: int = 50, channel: Channel | None = None, address: str = ""
    ) -> Feed:
        """What was taken after the number ``after``, oldest first; of one channel, for one address.

        Whoever goes on with ``last`` sees every message once. A feed of one channel looks at a few thousand messages at
        most; it may then be empty although more follow.
        """
        if address:
            return await self._feed_of(after, most, (channel,) if channel else CHANNELS, address)
        found: list[tuple[int, Message]] = []
        for _ in range(_MOST_LOOKED_AT // _BATCH):
            numbered = await TAKEN.at().range_by_score(self._valkey, after + 1, limit=_BATCH if channel else most)
            messages = {each.id: each for each in await self._found([id for id, _ in numbered])}
            for id, number in numbered:
                after = int(number)
                if id in messages and channel in (None, messages[id].channel):
                    found.append((after, messages[id]))
                    if len(found) == most:
                        return Feed(tuple(found), after)
            if not channel or len(numbered) < _BATCH:
                break
        return Feed(tuple(found), after)

    async def _feed_of(self, after: int, most: int, channels: tuple[Channel, ...], address: str) -> Feed:
        if not address.isprintable():
            return Feed((), after)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for channel in channels:
                INBOX.at(f"{channel}:{address}").range(pipeline)
            inboxes: list[list[tuple[str, float]]] = await pipeline.execute()
        ids = [id for inbox in inboxes for id, _ in inbox]
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for id in ids:
                TAKEN.at().score(pipeline, id)
            numbers: list[float | None] = await pipeline.execute() if ids else []
        wanted = sorted((int(number), id) for id, number in zip(ids, numbers, strict=True)
                        if number is not None and number > after)[:most]
        messages = {each.id: each for each in await self._found([id for _, id in wanted])}
        found = tuple((number, messages[id]) for number, id in wanted if id in messages)
        return Feed(found, wanted[-1][0] if wanted else after)

    async def all(self) -> AsyncIterator[Message]:
        """Every message that is kept, in no particular order: for counting after a test."""
        ids = [id for id, _ in await MESSAGES.at().range(self._valkey)]
        for start in range(0, len(ids), _BATCH):
            for message in await self._found(ids[start:start + _BATCH]):
                yield message

    async def counts(self) -> dict[str, int]:
        """How often what happened, such as ``sms:accepted``, ``email:throttled``, ``sms:webhooks_called``."""
        found = await COUNTS.at().all(self._valkey)
        return {name: number for name, number in found.items() if name != _NUMBERED}

    async def _found(self, ids: list[str]) -> list[Message]:
        if not ids:
            return []
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for id in ids:
                MESSAGE.at(id).get(pipeline)
            found: list[Message | None] = await pipeline.execute()
        return [message for message in found if message is not None]


def _channel_of(recipient: str) -> Channel:
    return cast(Channel, recipient.partition(":")[0])
