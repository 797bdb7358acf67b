"""Every strategy selects something, and what it promised."""

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.messaging.touches.messages import SmsMessage
from keystead.messaging.touches.selection import STRATEGIES, remembers, select

Priorities = st.lists(st.integers(0, 3), min_size=1, max_size=6)


def listed(priorities: list[int]) -> list[SmsMessage]:
    return [SmsMessage(priority=priority, uid=f"m{place}", body_format="x")
            for place, priority in enumerate(sorted(priorities))]


def test_nothing_is_selected_only_where_there_is_no_message():
    assert all(select(strategy, [], None, random.Random(1)) is None for strategy in STRATEGIES)
    assert [strategy for strategy in STRATEGIES if not remembers(strategy)] == ["random_with_replacement"]


@settings(max_examples=60, deadline=None)
@given(Priorities, st.integers())
def test_fixed_shows_each_message_once_per_cycle_by_priority(priorities, seed):
    messages, rng, state = listed(priorities), random.Random(seed), None
    for _ in range(3):
        shown = []
        for _ in messages:
            chosen = select("fixed", messages, state, rng)
            shown.append(chosen.message)
            state = chosen.state
        assert sorted(message.uid for message in shown) == sorted(message.uid for message in messages)
        assert all(first.priority <= second.priority for first, second in pairwise(shown))


@settings(max_examples=60, deadline=None)
@given(Priorities, st.lists(st.booleans(), max_size=20))
def test_ordered_never_repeats_a_priority_before_it_starts_over(priorities, resets):
    messages, state, last = listed(priorities), None, None
    levels = sorted(set(priorities))
    for reset in resets:
        chosen = select("ordered_resettable", messages, state, random.Random(0), reset=reset)
        later = [level for level in levels if last is not None and level > last]
        assert chosen.message.priority == (levels[0] if reset or not later else later[0])
        state, last = chosen.state, chosen.message.priority


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 25))
def test_ordered_takes_of_equals_what_was_shown_longest_ago(equals, times):
    messages, state, shown = listed([1] * equals), None, []
    for _ in range(times):
        chosen = select("ordered_resettable", messages, state, random.Random(0))
        shown.append(chosen.message.uid)
        state = chosen.state
    assert shown == [f"m{place % equals}" for place in range(times)]
    assert state["counter"] == times


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(STRATEGIES), Priorities, Priorities, st.integers(0, 8), st.integers())
def test_a_list_that_was_edited_between_sends_still_selects(strategy, before, after, times, seed):
    rng, state = random.Random(seed), None
    for _ in range(times):
        state = select(strategy, listed(before), state, rng).state
    chosen = select(strategy, listed(after)[1:] or listed(after), state, rng, reset=bool(seed % 2))
    assert chosen is not None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STRATEGIES), Priorities, st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["seen", "counter", "last_priority", "m0"]), inner, max_size=3), max_leaves=6))
def test_a_state_of_any_shape_still_selects(strategy, priorities, state):
    assert select(strategy, listed(priorities), state, random.Random(3)) is not None
