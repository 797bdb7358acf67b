"""Names that scripts put together around a member."""

import pytest

from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Layout, ListKey
from keystead.patterns.derived import around, pieces


def test_head_member_and_tail_give_the_name_of_the_reference():
    space = Keyspace("room", tag="t:{tenant}")
    key = ListKey(space, "q:{tenant}:held:{worker}:x", str, purpose="a test")
    for layout in (Layout.PLAIN, Layout.TAGGED):
        head, tail = around(key, "worker", {"tenant": "acme"}, layout)
        assert (head + "w1" + tail).encode() == key.at("acme", "w1").name(layout)


def test_pieces_stand_around_several_variables():
    space = Keyspace("room", tag="t")
    key = ListKey(space, "q:{value}:{unix_date}:x", str, purpose="a test")
    for layout in (Layout.PLAIN, Layout.TAGGED):
        head, middle, tail = pieces(key, ("value", "unix_date"), {}, layout)
        assert f"{head}v{middle}5{tail}".encode() == key.at("v", 5).name(layout)


def test_member_that_decides_the_tag_is_refused():
    key = ListKey(Keyspace("room", tag="t:{worker}"), "held:{worker}", str, purpose="a test")
    with pytest.raises(DeclarationError, match="depends on worker"):
        around(key, "worker", {}, Layout.PLAIN)
