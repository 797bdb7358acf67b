"""Retries: full jitter, the provider's wish, and one decision for each failure."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.jobs import AfterFailure, FailurePolicy
from keystead.messaging.sending import Lane, Retries, backoff, retry_or_abandon, traced
from keystead.settings import MessagingSettings

from .post import DELIVERED, LETTERS, Letter

RETRIES = Retries(FailurePolicy(3, 12 * 3600), base_seconds=30, cap_seconds=3600)


@given(st.integers(0, 2000), st.floats(0.1, 100), st.floats(0.1, 10_000), st.integers())
def test_a_pause_is_anything_up_to_the_doubled_base(retry, base, cap, seed):
    pause = backoff(retry, base_seconds=base, cap_seconds=cap, rng=random.Random(seed))
    assert 0 <= pause <= min(cap, base * 2.0 ** min(retry, 30))


def test_pauses_are_spread_over_the_whole_range():
    pauses = [backoff(2, base_seconds=30, cap_seconds=3600, rng=random.Random(seed)) for seed in range(400)]
    assert min(pauses) < 12 and max(pauses) > 108 and 50 < sum(pauses) / 400 < 70


def test_the_pause_that_the_provider_asks_for_is_kept():
    assert all(1090.0 <= RETRIES.due_at(1000.0, 0, 90.0) <= 1120.0 for _ in range(50))


def test_the_rules_come_from_the_settings():
    rules = Retries.of(MessagingSettings(retries=1, retry_age_seconds=60, retry_base_seconds=2, retry_cap_seconds=4))
    assert rules.policy == FailurePolicy(1, 60) and (rules.base_seconds, rules.cap_seconds) == (2, 4)


async def decided(server, letter: Letter, *, now: float = 100.0, retryable: bool = True) -> AfterFailure:
    return await retry_or_abandon(
        server, LETTERS, letter, retryable=retryable, now=now, retries=RETRIES,
        retried=lambda writes: DELIVERED.at().push_right(writes, "retried"),
        abandoned=lambda writes: DELIVERED.at().push_right(writes, "abandoned"),
    )


async def test_four_sends_and_then_it_is_given_up(server):
    letter, outcomes = Letter("l1", initially_queued_at=100.0, lane="low"), []
    for send in range(4):
        outcomes.append(await decided(server, letter, now=100.0 + send))
        await LETTERS.move_due(server, Lane.LOW, now=1e6)
        if waiting := await LETTERS.waiting("low").pop_left(server):
            letter = waiting
            assert (letter.retry, letter.last_queued_at) == (send + 1, 100.0 + send)
    assert outcomes == [AfterFailure.RETRY] * 3 + [AfterFailure.ABANDON]
    assert await DELIVERED.at().range(server) == ["retried"] * 3 + ["abandoned"]
    assert [entry.what for entry in await traced(server, "l1")] == ["retried"] * 3 + ["abandoned"]


async def test_age_wins_when_it_is_reached_first(server):
    assert await decided(server, Letter("l1", initially_queued_at=100.0), now=100.0 + 43_201) is AfterFailure.ABANDON


@pytest.mark.parametrize("later", [101.0, 100.0 + 50_000])
async def test_a_handler_that_runs_again_learns_what_was_decided_and_changes_nothing(server, later):
    letter = Letter("l1", initially_queued_at=100.0)
    assert await decided(server, letter) is AfterFailure.RETRY
    assert await decided(server, letter, now=later) is AfterFailure.RETRY
    assert await DELIVERED.at().range(server) == ["retried"]
    assert await LETTERS.move_due(server, Lane.NORMAL, now=1e6) == 1


async def test_what_is_not_retryable_is_left_alone(server):
    assert await decided(server, Letter("l1", initially_queued_at=100.0), retryable=False) is AfterFailure.NOTHING
    assert await DELIVERED.at().range(server) == []
    assert await LETTERS.decided("send", "l1", 0).get(server) is None


async def test_a_pause_that_makes_a_message_too_old_gives_it_up(server):
    letter = Letter(uid="em_1", initially_queued_at=100.0, last_queued_at=100.0)

    async def asked_to_wait(letter: Letter, seconds: float) -> AfterFailure:
        return await retry_or_abandon(
            server, LETTERS, letter, retryable=True, now=200.0, retries=RETRIES, retry_after_seconds=seconds,
            retried=lambda writes: DELIVERED.at().push_right(writes, "retried"),
            abandoned=lambda writes: DELIVERED.at().push_right(writes, "abandoned"),
        )

    assert await asked_to_wait(letter, 86_400.0) is AfterFailure.ABANDON
    other = Letter(uid="em_2", initially_queued_at=100.0, last_queued_at=100.0)
    assert await asked_to_wait(other, 600.0) is AfterFailure.RETRY
    assert await DELIVERED.at().range(server, 0, -1) == ["abandoned", "retried"]
