"""A channel as touches use it: where a person is reached there, how a message is handed over, and what news of it says.

Each channel has its own shapes; what stands here is what they have in common.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import JobRef
from keystead.keys import ListRef, SortedSetRef, StringRef
from keystead.messaging.sending import TraceEntry
from keystead.messaging.touches.models import Channel
from keystead.patterns import WorkList, Writes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message for one destination. ``shown``: the words, as ``messages.rendered`` gives them for the channel."""

    uid: str
    address: str
    shown: Mapping[str, Any]
    success: JobRef
    failure: JobRef
    user_sub: str
    lane: str
    now: float


@dataclass(frozen=True, slots=True)
class Arrived:
    """News of a message that reached its destination."""

    message_uid: str
    destination: str
    shown: dict[str, Any]
    at: float


class After(Enum):
    """What became of a message that failed. The values are the types of the log."""

    RETRIED = "send_retry"
    ABANDONED = "send_abandon"
    FINAL = "send_unretryable"
    IGNORED = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """News of a message that failed, and what the channel did about it. ``step`` tells its failures apart."""

    message_uid: str
    destination: str
    after: After
    info: dict[str, Any] = field(default_factory=dict)
    step: str = ""


class Outlet(Protocol):
    """One channel."""

    @property
    def channel(self) -> Channel: ...

    @property
    def work(self) -> WorkList[Any]:
        """What its couriers take from."""
        ...

    def intent(self, uid: str) -> StringRef[str]:
        """There while the provider is being asked for a message."""
        ...

    async def is_with_provider(self, valkey: Valkey, uid: str, steps: Sequence[TraceEntry]) -> bool:
        """Whether the provider took a message and news of it is awaited. ``steps``: what was noted of its life."""
        ...

    @property
    def waiting(self) -> tuple[ListRef[Any], ...]:
        """The lists its messages wait in, one for each lane."""
        ...

    @property
    def retrying(self) -> tuple[SortedSetRef[Any], ...]:
        """The sets in which they wait for another try."""
        ...

    def abandoned(self, writes: Writes, message: Any, now: float) -> None:
        """Count a message, as it waits in one of these, as given up."""
        ...

    async def addresses(self, subs: Iterable[UserSub]) -> Mapping[UserSub, list[str]]:
        """Where these people can be reached now."""
        ...

    def queue(self, writes: Writes, message: Prepared) -> None:
        """Let a message wait for its courier, with its count. ``Invalid`` if it cannot be sent like this."""
        ...

    def arrived(self, data_raw: str) -> Arrived:
        """What a success job is told."""
        ...

    async def failed(self, data_raw: str, *, give_up: bool = False) -> Failed:
        """What a failure job is told; the message is tried again or given up by the rules of the channel. The same
        answer however often it is asked. ``give_up``: it is not tried again."""
        ...


def last_fact(steps: Sequence[TraceEntry], name: str) -> str:
    """What the latest step that says it says; empty if none does."""
    return next((str(step.facts[name]) for step in reversed(steps) if name in step.facts), "")


Outlets = Mapping[Channel, Outlet]
