"""Where messages, links and reminders lie that were given up, and the way back; for the dashboard and for commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.engine import Valkey
from keystead.keys import ListRef
from keystead.messaging.email.keys import NEWS as EMAIL_NEWS
from keystead.messaging.email.keys import SENDING as EMAIL
from keystead.messaging.links.keys import DELAYED, TO_PERSIST
from keystead.messaging.push.keys import HOT
from keystead.messaging.push.keys import SENDING as PUSH
from keystead.messaging.sms.keys import NEWS as SMS_NEWS
from keystead.messaging.sms.keys import RECOVERY
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.patterns import DeadLetter, DelayedSet, WorkList
from keystead.reminders.keys import QUEUED


@dataclass(frozen=True, slots=True)
class DeadPlace:
    """The dead letters of one queue, or of what is due at a time."""

    source: WorkList[Any] | DelayedSet[Any]

    @property
    def name(self) -> str:
        """What the queue is called."""
        source = self.source
        return source.queue_key.pattern if isinstance(source, WorkList) else source.due_key.pattern

    @property
    def dead(self) -> ListRef[DeadLetter]:
        return self.source.dead

    def lanes(self, valkey: Valkey) -> Sequence[Valkey]:
        """Where they lie: in each lane of a cluster, if there are any."""
        return valkey.lanes_of(self.dead.declaration)

    async def replay(self, lane: Valkey, most: int, now: float) -> int:
        """Let up to ``most`` of the oldest be tried again; says how many."""
        source = self.source
        return await (source.replay(lane, most) if isinstance(source, WorkList) else source.replay(lane, most, at=now))

    async def replay_chosen(self, lane: Valkey, raws: Sequence[bytes], now: float) -> int:
        """Let these be tried again, byte for byte as they lie there; says how many. At most a few hundred at once."""
        source = self.source
        if isinstance(source, WorkList):
            return await source.replay_chosen(lane, *raws)
        return await source.replay_chosen(lane, *raws, at=now)


_SOURCES: Final[tuple[WorkList[Any] | DelayedSet[Any], ...]] = (
    SMS.work, EMAIL.work, PUSH.work, TO_SEND, TO_LOG, SMS_NEWS, RECOVERY, EMAIL_NEWS, HOT, TO_PERSIST, DELAYED, QUEUED,
)
PLACES: Final[dict[str, DeadPlace]] = {place.name: place for place in (DeadPlace(source) for source in _SOURCES)}
