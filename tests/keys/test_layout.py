"""Layouts: how many lanes there are is known by each."""

import pytest

from keystead.errors import DeclarationError
from keystead.keys import Layout
from keystead.keys.slots import key_slot


def test_every_lane_knows_how_many_there_are() -> None:
    four = Layout.tagged(4)
    assert four is Layout.tagged(4) and four is not Layout.TAGGED and Layout.tagged() is Layout.TAGGED
    assert [four.in_lane(n).lane for n in range(4)] == [0, 1, 2, 3]
    assert {four.in_lane(n).lanes for n in range(4)} == {4}
    assert four.in_lane(3).in_lane(0) is four
    with pytest.raises(DeclarationError, match="1 to 1024"):
        Layout.tagged(0)


def test_a_person_is_always_in_the_same_lane_and_nobody_in_the_first() -> None:
    four = Layout.tagged(4)
    assert {four.lane_of(f"person_{n}") for n in range(200)} == {0, 1, 2, 3}
    assert four.lane_of("ada") == four.in_lane(2).lane_of("ada") == key_slot(b"ada") % 4
    assert four.lane_of("") == 0 and Layout.TAGGED.lane_of("ada") == 0 and Layout.PLAIN.lane_of("ada") == 0
