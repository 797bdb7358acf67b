"""Lengths of time within text."""

from hypothesis import given
from hypothesis import strategies as st

from keystead.inventory.durations import find_durations
from keystead.lengths import in_whole_units


def test_lengths_are_found_where_they_stand() -> None:
    text = "kept 2 days, then 1 h 30 min more; 5 users, x1s, 3 stars"

    assert [(text[found.start : found.end], found.seconds) for found in find_durations(text)] == [
        ("2 days", 172800), ("1 h 30 min", 5400)]


def test_longer_unit_after_a_shorter_one_is_another_length() -> None:
    assert [found.seconds for found in find_durations("30 min, 2 h")] == [1800, 7200]
    assert [found.seconds for found in find_durations("1 h, 1 h")] == [3600, 3600]


@given(st.integers(1, 10**9))
def test_a_spelled_length_is_found_again(seconds: int) -> None:
    assert [found.seconds for found in find_durations(in_whole_units(seconds))] == [seconds]
