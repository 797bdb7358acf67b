"""Pauses between tries."""

import pytest

from keystead.errors import DeclarationError
from keystead.jobs import NEVER, Retry, RetryLater


def test_pause_doubles_up_to_the_most() -> None:
    retry = Retry(first_seconds=1, most_seconds=10, jitter=0)
    assert [retry.pause_seconds(n) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]
    assert retry.pause_seconds(100_000) == 10


def test_chance_only_shortens_a_pause() -> None:
    retry = Retry(first_seconds=8, jitter=0.5)
    pauses = [retry.pause_seconds(1) for _ in range(200)]
    assert all(4 <= pause <= 8 for pause in pauses) and len(set(pauses)) > 100


def test_bad_values_are_refused() -> None:
    for bad in ({"tries": 0}, {"first_seconds": -1}, {"factor": 0.5}, {"jitter": 2}):
        with pytest.raises(DeclarationError, match="a retry needs"):
            Retry(**bad)
    assert NEVER.tries == 1


def test_retry_later_says_when() -> None:
    assert str(RetryLater(5)) == "to be tried again in 5 s" and RetryLater(5).counts
