"""Lists, sets and sorted sets on a real server."""

from typing import Any

import pytest

from keystead.errors import DeclarationError
from keystead.keys.references_collections import scored_pairs

from .sample_room import DUE, NAMES, QUEUE, Sms


async def test_a_list(valkey: Any) -> None:
    ref = QUEUE.at("1")
    assert await ref.push_right(valkey, Sms("b"), Sms("c")) == 2
    assert await ref.push_left(valkey, Sms("a")) == 3
    assert [sms.sid for sms in await ref.range(valkey)] == ["a", "b", "c"]
    assert [sms.sid for sms in await ref.range(valkey, 1, 1)] == ["b"]
    assert await ref.length(valkey) == 3
    assert [(await ref.pop_left(valkey)).sid, (await ref.pop_right(valkey)).sid] == ["a", "c"]
    await ref.pop_left(valkey)
    assert await ref.pop_left(valkey) is None
    with pytest.raises(DeclarationError, match="nothing to write"):
        await ref.push_right(valkey)


async def test_a_set(valkey: Any) -> None:
    ref = NAMES.at("1")
    assert (await ref.add(valkey, "a", "b"), await ref.add(valkey, "b", "c")) == (2, 1)
    assert sorted(await ref.members(valkey)) == ["a", "b", "c"]
    assert (await ref.contains(valkey, "a"), await ref.contains(valkey, "z")) == (True, False)
    assert await ref.contains_many(valkey, ["z", "a", "b"]) == [False, True, True]
    assert (await ref.remove(valkey, "a", "z"), await ref.size(valkey)) == (1, 2)


async def test_a_sorted_set(valkey: Any) -> None:
    ref = DUE.at("1")
    assert (await ref.add(valkey, "a", 3), await ref.add(valkey, "a", 1.5)) == (True, False)
    assert await ref.add_many(valkey, {"b": 2.0, "c": float("inf")}) == 2
    assert await ref.lowest_score(valkey) == 1.5 and await DUE.at("none").lowest_score(valkey) is None
    assert await ref.range(valkey) == [("a", 1.5), ("b", 2.0), ("c", float("inf"))]
    assert await ref.range(valkey, 0, 0, descending=True) == [("c", float("inf"))]
    assert await ref.range_by_score(valkey, 1.5, 2) == [("a", 1.5), ("b", 2.0)]
    assert await ref.range_by_score(valkey, limit=1) == [("a", 1.5)]
    assert (await ref.count(valkey, 0, 10), await ref.size(valkey)) == (2, 3)
    assert (await ref.score(valkey, "b"), await ref.score(valkey, "z")) == (2.0, None)
    assert await ref.increment(valkey, "b", 0.5) == 2.5
    assert await ref.remove(valkey, "b", "z") == 1
    with pytest.raises(DeclarationError, match="must be a number"):
        await ref.add(valkey, "a", float("nan"))


def test_scores_of_either_protocol() -> None:
    assert scored_pairs([b"a", b"1.5"]) == scored_pairs([[b"a", 1.5]]) == [(b"a", 1.5)]
    assert scored_pairs([]) == []
