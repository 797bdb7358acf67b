"""Latencies in bounded memory: counted in steps of two percent, so percentiles are as exact as that."""

import math
from collections import Counter
from typing import Final

_STEP: Final = math.log(1.02)
_LEAST_SECONDS: Final = 1e-5


class Latencies:
    """Add any number; ask for percentiles. ``max_seconds`` is exact."""

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()
        self.count = 0
        self.max_seconds = 0.0

    def add(self, seconds: float) -> None:
        self._steps[math.ceil(math.log(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS) / _STEP)] += 1
        self.count += 1
        self.max_seconds = max(self.max_seconds, seconds)

    def percentile(self, percent: float) -> float:
        """So many percent took this long or less: exact, or up to two percent too much; 0 when there were none."""
        wanted, seen = math.ceil(self.count * percent / 100), 0
        for step in sorted(self._steps):
            seen += self._steps[step]
            if seen >= wanted:
                return min(_LEAST_SECONDS * math.exp(step * _STEP), self.max_seconds)
        return 0.0

    def merged(self, other: "Latencies") -> "Latencies":
        both = Latencies()
        both._steps = self._steps + other._steps
        both.count = self.count + other.count
        both.max_seconds = max(self.max_seconds, other.max_seconds)
        return both
