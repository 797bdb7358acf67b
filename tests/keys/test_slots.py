"""Slots agree with the server's."""

import pytest

from keystead.keys import hash_tag, key_slot

KEYS = [
    b"", b"foo", b"{user1000}.following", b"{user1000}.followers", b"foo{}{bar}", b"foo{{bar}}zap", b"foo{bar}{zap}",
    b"{msg:0}sms:pending:SM1", b"a{b", b"a}b{c}", b"\xff{\x00}\xfe",
]


def test_the_tag_is_what_stands_in_the_first_braces() -> None:
    assert [hash_tag(key) for key in KEYS] == [
        b"", b"foo", b"user1000", b"user1000", b"foo{}{bar}", b"{bar", b"bar", b"msg:0", b"a{b", b"c", b"\x00",
    ]


def test_known_slots() -> None:
    assert (key_slot(b"123456789"), key_slot(b"foo")) == (0x31C3, 12182)


@pytest.mark.cluster
async def test_slots_agree_with_the_server(cluster) -> None:  # type: ignore[no-untyped-def]
    for key in KEYS:
        assert await cluster.execute_command("CLUSTER", "KEYSLOT", key) == key_slot(key)
