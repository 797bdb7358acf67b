"""What the providers took: kept before the answer is given, so that no accepted message is ever lost."""

from collections.abc import Iterable, Sequence
from typing import Final

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.messaging.sandbox.keys import COUNTS, DUE, INBOX, KEPT_SECONDS, MESSAGE, MESSAGES, RECIPIENTS, TAKEN
from keystead.messaging.sandbox.models import Channel, Delivery, Message
from keystead.patterns.derived import around

ACCEPT: Final = Script("keystead.messaging.sandbox", "scripts/accept.lua")
INBOX_MESSAGES: Final = 1000
RECIPIENTS_KEPT: Final = 10_000
DROP_ITEMS: Final = 500
# What ended just now may still be asked for, or its webhook be on its way.
REST_SECONDS: Final = 600.0


class Ledger:
    """Takes messages and finds them again. ``keep_messages``: beyond so many, those that ended first are dropped."""

    def __init__(self, valkey: Valkey, clock: Clock, *, keep_messages: int = 10_000) -> None:
        self._valkey = valkey
        self._clock = clock
        self._keep_messages = keep_messages
        self._names = (
            *around(MESSAGE, "id", {}, valkey.layout), *around(INBOX, "recipient", {}, valkey.layout),
            KEPT_SECONDS * 1000, INBOX_MESSAGES,
        )
        self._keys = (MESSAGES.at(), RECIPIENTS.at(), DUE.due, COUNTS.at(), TAKEN.at())

    async def accept(
        self, channel: Channel, messages: Sequence[Message], webhooks: Iterable[Delivery] = (), *,
        counted: str = "accepted",
    ) -> None:
        """Keep messages and the webhooks that follow from them. One atomic step, and durable when it returns."""
        parts: list[bytes | str] = []
        for message in messages:
            parts += (message.id, message.recipient, MESSAGE.codec.encode(message), repr(message.ends_at))
        for webhook in webhooks:
            parts += (repr(webhook.due_at), DUE.due_key.codec.encode(webhook))
        await ACCEPT(
            self._valkey, keys=self._keys,
            args=(*self._names, f"{channel}:{counted}", self._clock.now(), len(messages), *parts),
        )

    async def find(self, ids: Sequence[str]) -> list[Message | None]:
        """Messages by id, in order; None for one that is unknown."""
        known = [id for id in ids if _is_writable(id) and ":" not in id]
        if not known:
            return [None] * len(ids)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for id in known:
                MESSAGE.at(id).get(pipeline)
            found = dict(zip(known, await pipeline.execute(), strict=True))
        return [found.get(id) for id in ids]

    async def of(self, channel: Channel, to: str, most: int = 50) -> list[Message]:
        """What an address got, newest first."""
        if not _is_writable(to):
            return []
        ids = await INBOX.at(f"{channel}:{to}").range(self._valkey, 0, most - 1, descending=True)
        return [message for message in await self.find([id for id, _ in ids]) if message is not None]

    async def count(self, channel: Channel, what: str, by: int = 1) -> None:
        await COUNTS.at().increment(self._valkey, f"{channel}:{what}", by)

    async def drop_old(self) -> int:
        """Make room: drop what is beyond the kept number and ended a while ago; says how many messages that were."""
        extra = await MESSAGES.at().size(self._valkey) - self._keep_messages
        size = await RECIPIENTS.at().size(self._valkey)
        if size > RECIPIENTS_KEPT:
            old = await RECIPIENTS.at().range(self._valkey, 0, size - RECIPIENTS_KEPT - 1)
            await RECIPIENTS.at().remove(self._valkey, *(recipient for recipient, _ in old))
        dropped = 0
        while dropped < extra:
            ended = await MESSAGES.at().range_by_score(
                self._valkey, most=self._clock.now() - REST_SECONDS, limit=min(DROP_ITEMS, extra - dropped)
            )
            if not ended:
                break
            async with self._valkey.pipeline(transaction=True) as pipeline:
                for id, _ in ended:
                    MESSAGE.at(id).delete(pipeline)
                MESSAGES.at().remove(pipeline, *(id for id, _ in ended))
                TAKEN.at().remove(pipeline, *(id for id, _ in ended))
                await pipeline.execute()
            dropped += len(ended)
        return dropped


def _is_writable(text: str) -> bool:
    """Whether a text that came from outside can be part of a key at all."""
    return bool(text) and text.isprintable() and len(text) <= 512
