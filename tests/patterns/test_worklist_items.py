"""Items and dead letters as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.keys import INTEGER, Undecodable
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec, opened

CODEC = DeadLetterCodec()


@given(st.builds(DeadLetter, st.binary(), st.text(), st.floats(0, 1e12), st.integers(0, 1000)))
def test_dead_letter_keeps_the_item_byte_for_byte(letter):
    assert CODEC.decode(CODEC.encode(letter)) == letter


@pytest.mark.parametrize("raw", [b"", b"{}", b"{}\nitem", b'{"attempts":"x","error":"","dead_at":1}\nitem', b"\n"])
def test_what_is_no_dead_letter_is_undecodable(raw):
    with pytest.raises(Undecodable):
        CODEC.decode(raw)


def test_spoiled_elements_do_not_stop_the_others():
    items, spoiled = opened(INTEGER, [b"1", b"x", b"2", b""])
    assert [item.value for item in items] == [1, 2]
    assert [each.raw for each in spoiled] == [b"x", b""]
    assert "does not decode" in spoiled[0].reason
