"""What a courier asks of a channel: one request to its provider, and what follows from the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from keystead.errors import Unavailable
from keystead.messaging.sending.models import Fact
from keystead.patterns import Writes

T_contra = TypeVar("T_contra", contravariant=True)


class Health(Enum):
    """What a request says of the provider. Whether the message could be delivered is another question."""

    FINE = "it answered as it should"
    FAILED = "it could not be reached, or could not work"
    THROTTLED = "it asks for a pause"
    NOT_CALLED = "no request was needed"


class CredentialsMissing(Unavailable):
    """What proves to the provider who we are cannot be had now; nothing was sent."""


class Verdict(Enum):
    """What is known of a message that may have been sent."""

    NOT_SENT = "it was not sent, or nobody can say: send it"
    WAIT = "nobody can say yet: ask again later"


@dataclass(slots=True)
class Carried:
    """What became of one message.

    ``writes`` happen in the step in which the message leaves the courier's hands, or not at all. ``counts`` are added
    to fields of the run. ``facts`` go into the trace, beside what the courier notes itself.
    """

    writes: Writes
    health: Health = Health.FINE
    retry_after_seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)


def health_of(carried: Sequence[Carried]) -> Health:
    """What one request says of the provider, whatever became of each message in it."""
    seen = {result.health for result in carried}
    for health in (Health.FAILED, Health.THROTTLED, Health.FINE):
        if health in seen:
            return health
    return Health.NOT_CALLED


class Carrier(Protocol[T_contra]):
    """A channel's way to its provider. ``batch_items``: how many messages fit into one request."""

    @property
    def batch_items(self) -> int: ...

    async def expect(self, items: Sequence[T_contra]) -> None:
        """These are carried soon: what can be found out for all of them at once is. Never fails for what is away."""
        ...

    async def carry(self, items: Sequence[T_contra]) -> Sequence[Carried]:
        """One request; an answer for each message, in their order.

        A provider that fails is an answer, not an exception. ``Unavailable`` is only for what is needed before the
        provider is called, such as the database or (``CredentialsMissing``) what proves who we are: then the messages
        are tried again, and nothing is counted. Any other exception counts as a crash of the message.
        """
        ...

    async def verify(self, item: T_contra) -> Carried | Verdict:
        """What became of a message whose courier died between asking the provider and noting the answer."""
        ...

    def drop(self, item: T_contra) -> Carried:
        """What follows when such a message is given up without asking: its failure job, not retryable."""
        ...
