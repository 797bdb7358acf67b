"""Measure how fast a registry with the shapes of all seed patterns says what a live key is."""

import random
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

from bench.load import protocol
from keystead.keys import Layout, Registry

SEED_PATTERNS = Path(__file__).parents[2] / "tests" / "keys"
KEYS_OF_EACH = 60  # many different keys, so that remembering answers would not help
BATCH = 2000


def rate(resolve: Callable[[bytes], object], keys: Sequence[bytes], seconds: float, warm_up: float) -> float:
    """Keys resolved per second, over and over through ``keys``."""
    _count(resolve, keys, warm_up)
    done, took = _count(resolve, keys, seconds)
    return done / took


def _count(resolve: Callable[[bytes], object], keys: Sequence[bytes], seconds: float) -> tuple[int, float]:
    batches = cycle([keys[start : start + BATCH] for start in range(0, len(keys) - BATCH + 1, BATCH)])
    done, begin = 0, time.perf_counter()
    while (took := time.perf_counter() - begin) < seconds:
        for key in next(batches):
            resolve(key)
        done += BATCH
    return done, took


def shuffled_keys(registry: Registry) -> list[bytes]:
    """Concrete keys of every declaration in random order, each seen to come back to it with its arguments."""
    rng = random.Random(423)
    found = list(registry.sample_keys(rng, each=KEYS_OF_EACH))
    for declaration, arguments, raw_key in found:
        match = registry.resolve(raw_key)
        if match is None or match.declaration is not declaration or match.arguments != arguments:
            raise SystemExit(f"{raw_key!r} came back as {match!r}; a figure for it would mean nothing")
    rng.shuffle(found)
    return [raw_key for _, _, raw_key in found]


def main() -> None:
    given = protocol.parser().parse_args()
    sys.path.insert(0, str(SEED_PATTERNS))
    from seed_patterns import seed_keyspace

    keyspace = seed_keyspace()
    begin = time.perf_counter()
    registry = Registry([keyspace])
    figures = {"build_seconds": time.perf_counter() - begin}
    tagged = Registry([keyspace], Layout.TAGGED)
    keys = shuffled_keys(registry)
    drifted = [key for key in (known + b":old" for known in keys) if registry.resolve(key) is None]
    for name, resolve, found in (
        ("plain", registry.resolve, keys),
        ("tagged", tagged.resolve, shuffled_keys(tagged)),
        ("undeclared", registry.resolve, drifted),
    ):
        figures[f"{name}_per_second"] = rate(resolve, found, given.seconds, given.warm_up)
    facts = {"library": f"keystead {version('keystead')}", "declarations": len(registry), "keys": len(keys)}
    protocol.answer(figures, facts)


if __name__ == "__main__":
    main()
