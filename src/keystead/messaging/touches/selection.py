"""Which message of a touch point a person gets: three strategies, each a pure function of what was chosen before.

===========================  ========================================================================================
``random_with_replacement``  any message, each as likely; remembers nothing
``fixed``                    every message once, by priority; then all over again
``ordered_resettable``       ever higher priorities; from the lowest again at the end, or when the event says so
===========================  ========================================================================================

A state that was left by another version of the list, or by another strategy, still selects: what it does not know is
ignored. Something is selected whenever there is a message.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, get_args

Strategy = Literal["random_with_replacement", "fixed", "ordered_resettable"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
RESET: Final = "ss_reset"  # the event parameter that starts an ordered sequence over


class Choosable(Protocol):
    """What a message must tell: which one it is, and its place in the order."""

    @property
    def uid(self) -> str: ...

    @property
    def priority(self) -> int: ...


M = TypeVar("M", bound=Choosable)


@dataclass(frozen=True, slots=True)
class Chosen(Generic[M]):
    """The message, and what to remember of the choice; None where the strategy remembers nothing."""

    message: M
    state: Any


def remembers(strategy: Strategy) -> bool:
    """Whether the strategy needs the state of the person."""
    return strategy != "random_with_replacement"


def select(
    strategy: Strategy, messages: Sequence[M], state: Any, rng: random.Random, *, reset: bool = False
) -> Chosen[M] | None:
    """Choose among ``messages``, sorted by priority; None only if there are none. ``state`` None: nothing yet."""
    if not messages:
        return None
    if strategy == "fixed":
        return _fixed(messages, state, rng)
    if strategy == "ordered_resettable":
        return _ordered(messages, state, reset)
    return Chosen(rng.choice(messages), None)


def _fixed(messages: Sequence[M], state: Any, rng: random.Random) -> Chosen[M]:
    known = {message.uid for message in messages}
    seen = [uid for uid in state if isinstance(uid, str) and uid in known] if isinstance(state, list) else []
    unseen = [message for message in messages if message.uid not in seen]
    if not unseen:
        seen, unseen = [], list(messages)
    lowest = min(message.priority for message in unseen)
    chosen = rng.choice([message for message in unseen if message.priority == lowest])
    return Chosen(chosen, [*seen, chosen.uid])


def _ordered(messages: Sequence[M], state: Any, reset: bool) -> Chosen[M]:
    found = state if isinstance(state, dict) else {}
    last, counter = found.get("last_priority"), _whole(found.get("counter"))
    known = {message.uid for message in messages}
    before = found.get("seen")
    seen = {uid: _whole(value) for uid, value in before.items() if uid in known} if isinstance(before, dict) else {}
    later = [message for message in messages
             if not reset and isinstance(last, int | float) and message.priority > last]
    candidates = later or list(messages)
    lowest = min(message.priority for message in candidates)
    # Never seen comes first, then what was seen longest ago; among equals the first of the list, as min does.
    chosen = min((message for message in candidates if message.priority == lowest),
                 key=lambda message: seen.get(message.uid, -1))
    state = {"last_priority": lowest, "counter": counter + 1, "seen": {**seen, chosen.uid: counter}}
    return Chosen(chosen, state)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
