"""Layouts, and lanes of the tagged one."""

import random

import pytest

from keystead.errors import DeclarationError
from keystead.keys import Channel, Keyspace, Layout, ListKey, Pair, Registry, SetKey, StringKey
from keystead.keys.globs import glob_of
from keystead.keys.layout import MOST_LANES
from keystead.keys.slots import key_slot
from keystead.keys.tags import Lane
from keystead.patterns.derived import around

MSG = Keyspace("msg", tag="msg", laned=True)
TEXT = StringKey(MSG, "text:{uid}", str, purpose="a test")
QUEUE = ListKey(MSG, "queue", str, purpose="a test")
OWN = ListKey(MSG, "own", str, tag="elsewhere", purpose="with a tag of its own")
NEWS = Channel(MSG, "news", str, purpose="a test")
PLAIN, TAGGED = Layout.PLAIN, Layout.TAGGED


def test_a_lane_is_one_object_and_the_plain_layout_has_none() -> None:
    assert TAGGED.in_lane(0) is TAGGED and TAGGED.in_lane(3) is TAGGED.in_lane(3).in_lane(3)
    assert TAGGED.in_lane(3).in_lane(0) is TAGGED
    assert PLAIN.in_lane(3) is PLAIN
    assert (TAGGED.in_lane(3).lane, TAGGED.in_lane(3).name, TAGGED.value) == (3, "TAGGED", "tagged")
    assert repr(TAGGED.in_lane(3)) == "<layout tagged, lane 3>"
    for wrong in (-1, MOST_LANES):
        with pytest.raises(DeclarationError, match="a lane is a number"):
            TAGGED.in_lane(wrong)


def test_laned_keys_have_the_lane_in_their_tag_and_share_its_slot() -> None:
    third = TAGGED.in_lane(3)
    assert TEXT.at("u").name(PLAIN) == b"text:u"
    assert TEXT.at("u").name(TAGGED) == b"{msg:0}text:u"
    assert TEXT.at("u").name(third) == b"{msg:3}text:u"
    assert key_slot(TEXT.at("u").name(third)) == key_slot(QUEUE.at().name(third)) == key_slot(b"msg:3")
    assert around(TEXT, "uid", {}, third) == ("{msg:3}text:", "")
    assert NEWS.at().name(third) == b"{msg:3}news"
    assert OWN.at().name(third) == b"{elsewhere}own"


def test_the_registry_knows_the_keys_of_every_lane() -> None:
    registry = Registry([MSG], layout=TAGGED)
    for lane in (0, 3, 12):
        match = registry.resolve(TEXT.at("u").name(TAGGED.in_lane(lane)))
        assert match is not None and (match.declaration, match.arguments, match.lane) == (TEXT, {"uid": "u"}, lane)
    for wrong in (b"{msg}queue", b"{msg:}queue", b"{msg:03}queue", b"{msg:x}queue", b"{msg:1024}queue",
                  b"{msg:" + b"9" * 5000 + b"}queue", b"{other:1}queue", b"{msg:-1}queue", "{msg:٣}queue".encode()):
        assert registry.resolve(wrong) is None
    assert registry.resolve_channel(b"{msg:2}news") is not None
    for declaration, _, raw in registry.sample_keys(random.Random(1)):
        found = registry.resolve(raw)
        assert found is not None and found.declaration is declaration


def test_documents_and_globs_say_that_there_are_lanes() -> None:
    assert TEXT.tag.describe() == "msg:n, n being the lane"
    assert glob_of(QUEUE, TAGGED) == glob_of(QUEUE, TAGGED.in_lane(2)) == b"{msg:*}queue"
    assert glob_of(QUEUE, PLAIN) == b"queue"


def test_lanes_need_a_fixed_tag() -> None:
    with pytest.raises(DeclarationError, match="lanes need a tag of fixed text"):
        StringKey(Keyspace("x", tag=Lane("x", "uid"), laned=True), "a:{uid}", str, purpose="a test")


def test_pairs_may_be_laned() -> None:
    space = Keyspace("pairs", tag="pairs", laned=True)
    record = StringKey(space, "record:{uid}", str, purpose="a test")
    index = SetKey(space, "index", str, member="a uid", pairs_with=Pair(record, "uid"), purpose="a test")
    assert index.pairs_with is not None
    assert index.pairs_with.record_of("u", {}).name(TAGGED.in_lane(1)) == b"{pairs:1}record:u"


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
