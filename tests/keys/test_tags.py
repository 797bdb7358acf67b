"""Tags keep keys that belong together in one slot."""

import pytest

from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Lane, Layout, Registry, StringKey, key_slot


def string(keyspace: Keyspace, pattern: str, **facts: object) -> StringKey[str]:
    return StringKey(keyspace, pattern, str, purpose="tests", **facts)  # type: ignore[arg-type]


def test_a_declaration_overrides_its_keyspace() -> None:
    keyspace = Keyspace("msg", tag="msg")
    assert string(keyspace, "a:{x}").at("1").name(Layout.TAGGED) == b"{msg}a:1"
    assert string(keyspace, "b:{x}", tag="other").at("1").name(Layout.TAGGED) == b"{other}b:1"
    assert string(Keyspace("room"), "a").at().name(Layout.TAGGED) == b"{room}a"


def test_a_tag_is_computed_from_a_variable() -> None:
    keyspace = Keyspace("queues")
    queue = string(keyspace, "queue:{name}:items", tag="queue:{name}")
    registry = Registry([keyspace], Layout.TAGGED)
    assert queue.at("mail").name(Layout.TAGGED) == b"{queue:mail}queue:mail:items"
    assert registry.resolve(b"{queue:mail}queue:mail:items") is not None
    assert registry.resolve(b"{queue:post}queue:mail:items") is None
    assert registry.resolve(b"queue:mail:items") is None


def test_a_closing_brace_cannot_break_a_computed_tag() -> None:
    queue = string(Keyspace("queues"), "queue:{name}", tag="queue:{name}")
    with pytest.raises(DeclarationError, match="closing brace"):
        queue.at("a}b")
    assert key_slot(queue.at("a{b").name(Layout.TAGGED)) == key_slot(b"queue:a{b")


def test_a_lane_is_stable_and_spreads() -> None:
    keyspace = Keyspace("msg", tag=Lane("msg", "user_sub", lanes=16))
    inbox = string(keyspace, "inbox:{user_sub}")
    outbox = string(keyspace, "outbox:{user_sub}")
    assert inbox.at("user_1").name(Layout.TAGGED) == b"{msg:0}inbox:user_1"
    lanes = set()
    for number in range(400):
        names = [key.at(f"user_{number}").name(Layout.TAGGED) for key in (inbox, outbox)]
        assert key_slot(names[0]) == key_slot(names[1])
        lanes.add(names[0].partition(b"}")[0])
    assert len(lanes) == 16
    registry = Registry([keyspace], Layout.TAGGED)
    assert registry.resolve(b"{msg:0}inbox:user_1") is not None
    assert registry.resolve(b"{msg:8}inbox:user_1") is None


@pytest.mark.parametrize("tag", ["", "a{b", "}", "{other}", Lane("x", "other")])
def test_a_tag_that_cannot_be_is_refused(tag: object) -> None:
    keyspace = Keyspace("room")
    with pytest.raises(DeclarationError):
        string(keyspace, "a:{x}", tag=tag)
    assert keyspace.declarations == []


def test_lanes_have_bounds() -> None:
    with pytest.raises(DeclarationError, match="lanes"):
        Lane("x", "y", lanes=0)
