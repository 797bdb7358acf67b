"""The rules in words, and what they make of an observed time."""

import pytest

from keystead.errors import DeclarationError
from keystead.keys import AtMost, Exactly, NoneUntilEnded, NoTtl, Sliding, Ttl, Until


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (NoTtl(), "none"),
        (NoneUntilEnded(3600), "none until ended, then at most 1 h"),
        (Exactly(60), "1 min"),
        (Exactly(90), "90 s"),
        (AtMost(30 * 86400), "at most 30 d"),
        (Sliding(180), "3 min after the last use"),
        (Sliding(86400, reads=False), "1 d after the last write"),
        (Until("expires_at"), "until expires_at of the payload"),
        (Until(at_most=86400), "until an instant given by the writer, at most 1 d"),
    ],
)
def test_a_rule_reads_plainly(rule: Ttl, words: str) -> None:
    assert rule.describe() == words


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (NoTtl(), [None], [1, 0]),
        (NoneUntilEnded(60), [None, 0, 60], [62]),
        (Exactly(60), [0, 30.5, 60], [None, 62]),
        (AtMost(60), [0, 60], [None, 62]),
        (Sliding(60), [0, 60], [None, 62]),
        (Until(), [0, 10**9], [None]),
        (Until(at_most=60), [0, 60], [None, 62]),
    ],
)
def test_an_observed_time_fits_or_not(rule: Ttl, good: list[float | None], bad: list[float | None]) -> None:
    assert [rule.check(seconds) for seconds in good] == [None] * len(good)
    assert all(rule.check(seconds) for seconds in bad)


@pytest.mark.parametrize("seconds", [0, -1, 0.0001, float("nan"), float("inf"), 10**10])
@pytest.mark.parametrize("rule", [Exactly, AtMost, Sliding, NoneUntilEnded])
def test_a_time_that_cannot_be_is_refused_when_declared(rule: type, seconds: float) -> None:
    with pytest.raises(DeclarationError, match="between a millisecond and ten years"):
        rule(seconds)
