"""Percentiles in bounded memory."""

import math

from hypothesis import given
from hypothesis import strategies as st

from keystead.demo.latencies import Latencies

_seconds = st.lists(st.floats(1e-4, 100), min_size=1, max_size=300)


@given(_seconds, st.sampled_from([50, 95, 99, 100]))
def test_a_percentile_is_exact_to_two_percent(values: list[float], percent: int) -> None:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    true = sorted(values)[math.ceil(len(values) * percent / 100) - 1]
    assert true * 0.999 <= latencies.percentile(percent) <= true * 1.0201
    assert latencies.max_seconds == max(values)
    assert latencies.count == len(values)


@given(_seconds, _seconds)
def test_two_joined_are_one(first: list[float], second: list[float]) -> None:
    left, right, both = Latencies(), Latencies(), Latencies()
    for value in first:
        left.add(value)
        both.add(value)
    for value in second:
        right.add(value)
        both.add(value)
    joined = left.merged(right)
    assert [joined.percentile(p) for p in (50, 99)] == [both.percentile(p) for p in (50, 99)]
    assert (joined.count, joined.max_seconds) == (both.count, both.max_seconds)


def test_none_at_all_is_zero() -> None:
    assert Latencies().percentile(99) == 0.0
