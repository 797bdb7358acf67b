"""What a taken item and the answers of a fair queue say."""

import pytest

from keystead.errors import Corrupt
from keystead.keys import codec_of
from keystead.patterns.fairqueue_values import Leased, batch_of, pairs


def test_item_that_does_not_decode_is_an_error_that_names_it() -> None:
    item = Leased("acme", "id-1", "w:0", 0, 1.0, 1, b"{not json", codec_of(dict))
    with pytest.raises(Corrupt, match="id-1 of acme"):
        _ = item.value


def test_reply_of_a_take_is_read_whole() -> None:
    reply = [b"1790000000500", 3, 1, [[b"acme", b"id-1", b"2", b"1790000000000", 4, b"body"]]]
    batch = batch_of(reply, "w~1", codec_of(bytes))
    assert (batch.look_at, batch.steps, batch.again) == (1_790_000_000.5, 3, True)
    [item] = batch.items
    assert (item.token, item.attempt, item.cost, item.value, item.stored_at) == ("w~1:2", 2, 4, b"body", 1_790_000_000)
    assert batch_of([b"inf", 0, 0, []], "w", codec_of(bytes)).look_at == float("inf")


def test_flat_pairs_are_paired() -> None:
    assert pairs([b"a", b"1", b"b", b"2"]) == (("a", "1"), ("b", "2"))
