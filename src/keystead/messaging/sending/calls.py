"""What this process asked of the providers lately: how long it took and what was wrong, a bounded number of calls.

Kept in memory and by process: a worker elsewhere knows its own. No address and no word of a message is in it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from keystead.messaging.sending.carrier import Carried, Health

KEPT_CALLS: Final = 500
# Of what a carrier noted, what says why; the rest names messages.
_FAILED: Final = ("error", "failed", "answer")
_WHY: Final = (*_FAILED, "why", "status")
_MOST_WHY: Final = 80


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a provider. ``why`` is empty for one that went well and whose messages were all taken."""

    at: float
    seconds: float
    messages: int
    health: Health
    refused: int = 0
    why: str = ""


class Calls:
    """The last calls of each channel, oldest first."""

    def __init__(self, kept: int = KEPT_CALLS) -> None:
        self._kept = kept
        self._by_channel: dict[str, deque[Call]] = {}

    def note(self, channel: str, at: float, seconds: float, carried: Iterable[Carried], health: Health) -> None:
        """Remember a request; one that was not made is none."""
        if health is Health.NOT_CALLED:
            return
        results = list(carried)
        troubled = [result for result in results
                    if result.health is not Health.FINE or any(name in result.facts for name in _FAILED)]
        why = _why(troubled[0]) if troubled else ""
        kept = self._by_channel.setdefault(channel, deque(maxlen=self._kept))
        kept.append(Call(at, seconds, len(results), health, len(troubled), why))

    def of(self, channel: str) -> tuple[Call, ...]:
        return tuple(self._by_channel.get(channel, ()))

    def clear(self) -> None:
        self._by_channel.clear()


def _why(result: Carried) -> str:
    said = [f"{result.facts[name]}" for name in _WHY if result.facts.get(name)]
    return " ".join(dict.fromkeys(said))[:_MOST_WHY] or result.health.value


calls = Calls()
