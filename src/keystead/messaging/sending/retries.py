"""When a message that failed is sent again, and when it is given up."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from keystead.engine import Script, Valkey
from keystead.jobs import STANDARD_POLICY, AfterFailure, FailurePolicy
from keystead.keys import StringRef
from keystead.messaging.sending.channel import DECIDED_SECONDS, Channel
from keystead.messaging.sending.models import Outgoing
from keystead.messaging.sending.trace import trace
from keystead.patterns import Writes
from keystead.settings import MessagingSettings

T = TypeVar("T", bound=Outgoing)

DECIDE = Script("keystead.messaging.sending", "scripts/decide.lua")
_LONGEST_EXPONENT: Final = 30


def backoff(retry: int, *, base_seconds: float, cap_seconds: float, rng: random.Random | None = None) -> float:
    """How long to wait before the retry with this number, from 0: anything up to the base, doubled for each before.

    All of it is chance (full jitter), so that what failed together does not come back together.
    """
    longest = min(cap_seconds, base_seconds * 2.0 ** min(retry, _LONGEST_EXPONENT))
    return (rng or random).uniform(0, longest)


@dataclass(frozen=True, slots=True)
class Retries:
    """The rules for messages that failed."""

    policy: FailurePolicy = STANDARD_POLICY
    base_seconds: float = 30.0
    cap_seconds: float = 3600.0
    trace_seconds: float = 172_800.0

    @classmethod
    def of(cls, settings: MessagingSettings) -> "Retries":
        return cls(FailurePolicy(settings.retries, settings.retry_age_seconds), settings.retry_base_seconds,
                   settings.retry_cap_seconds, settings.trace_seconds)

    def due_at(self, now: float, retry: int, retry_after_seconds: float = 0.0) -> float:
        """When to send again: after the pause that the provider asked for, and the backoff on top of it."""
        pause = backoff(retry, base_seconds=self.base_seconds, cap_seconds=self.cap_seconds)
        return now + max(0.0, retry_after_seconds) + pause


async def decide(valkey: Valkey, mark: StringRef[str], decision: AfterFailure, writes: Writes) -> AfterFailure:
    """Do the writes and note the decision, unless one was noted before, which is then given; one atomic step.

    A handler that is run again, even much later, learns what was decided the first time, and nothing happens twice.
    """
    names, packed = writes.packed(valkey.layout)
    noted, *stored = await DECIDE(
        valkey, keys=[mark, *names], args=(decision.name, DECIDED_SECONDS * 1000, packed)
    )
    if stored:
        writes.stored(stored)
    return AfterFailure[noted.decode()]


async def retry_or_abandon(
    valkey: Valkey, channel: Channel[T], item: T, *, retryable: bool, now: float, retries: Retries,
    retry_after_seconds: float = 0.0, retried: Callable[[Writes], None], abandoned: Callable[[Writes], None],
) -> AfterFailure:
    """Put a message whose sending failed back for later, or give it up; ``retried`` and ``abandoned`` add the counts.

    Once for each try of a message, however often it is asked: the answer is always that of the first time. Nothing is
    done for what is not retryable. ``item`` is a struct with ``retry`` and ``last_queued_at``, as it was sent.
    """
    decision = retries.policy.decide(
        retryable=retryable, retries=item.retry, first_queued_at=item.initially_queued_at, now=now
    )
    if decision is AfterFailure.NOTHING:
        return decision
    due_at = retries.due_at(now, item.retry, retry_after_seconds)
    if due_at - item.initially_queued_at > retries.policy.most_seconds:
        decision = AfterFailure.ABANDON  # by then it is too old to be sent
    writes = Writes(valkey.layout)
    if decision is AfterFailure.RETRY:
        again = _again(item, now)
        channel.retry_later(writes, again, due_at)
        retried(writes)
        trace(writes, item.uid, "retried", now, kept_seconds=retries.trace_seconds, retry=again.retry, due_at=due_at)
    else:
        abandoned(writes)
        trace(writes, item.uid, "abandoned", now, kept_seconds=retries.trace_seconds, retry=item.retry)
    return await decide(valkey, channel.decided("send", item.uid, item.retry), decision, writes)


def _again(item: T, now: float) -> T:
    struct: Any = item
    again: T = msgspec.structs.replace(struct, retry=item.retry + 1, last_queued_at=now)
    return again
