"""Channels, patterns of channels, and the keys of other programs."""

import pytest

from keystead.errors import Ambiguous, DeclarationError
from keystead.keys import Channel, ChannelPattern, Exactly, Keyspace, Layout, OpaqueNamespace, Registry, StringKey


def string(keyspace: Keyspace, pattern: str, **facts: object) -> StringKey[str]:
    return StringKey(keyspace, pattern, str, purpose="tests", **facts)  # type: ignore[arg-type]


def test_an_opaque_namespace_owns_what_nothing_else_does() -> None:
    keyspace = Keyspace("one")
    OpaqueNamespace(keyspace, "asynq:*", purpose="another program's queue")
    OpaqueNamespace(keyspace, "asynq:{default}:*", purpose="one queue of it")
    string(keyspace, "asynq:ours")
    for layout in (Layout.PLAIN, Layout.TAGGED):
        registry = Registry([keyspace], layout)
        found = {key: registry.resolve(key) for key in (b"asynq:servers", b"asynq:{default}:p", b"asynq:\xff\x00")}
        assert [match.declaration.pattern for match in found.values() if match] == [
            "asynq:*", "asynq:{default}:*", "asynq:*",
        ]
        ours = string(keyspace, "asynq:ours").at().name(layout)
        keyspace.declarations.pop()
        assert registry.resolve(ours).declaration.pattern == "asynq:ours"  # type: ignore[union-attr]
        assert registry.resolve(b"asyn") is None


@pytest.mark.parametrize("pattern", ["asynq", "*", "a*b*", "\n*"])
def test_an_opaque_namespace_is_a_prefix_and_a_star(pattern: str) -> None:
    with pytest.raises(DeclarationError):
        OpaqueNamespace(Keyspace("one"), pattern, purpose="tests")


def test_the_same_opaque_namespace_twice_is_ambiguous() -> None:
    keyspace = Keyspace("one")
    OpaqueNamespace(keyspace, "a:*", purpose="tests")
    OpaqueNamespace(keyspace, "a:*", purpose="tests")
    with pytest.raises(Ambiguous):
        Registry([keyspace])


def test_a_channel_pattern_answers_for_channels_nothing_else_declares() -> None:
    keyspace = Keyspace("one")
    Channel(keyspace, "chat:event:{room}", bytes, purpose="tests")
    listening = ChannelPattern(keyspace, "chat:*", bytes, purpose="tests")
    registry = Registry([keyspace])
    assert registry.resolve_channel(b"chat:event:1").declaration.pattern == "chat:event:{room}"  # type: ignore[union-attr]
    assert registry.resolve_channel(b"chat:\xff").declaration is listening  # type: ignore[union-attr]
    assert listening.glob(Layout.PLAIN) == b"chat:*"
    with pytest.raises(DeclarationError, match="sharded"):
        listening.glob(Layout.TAGGED)


def test_what_is_no_key_takes_no_expiry() -> None:
    with pytest.raises(DeclarationError, match="takes no ttl"):
        Channel(Keyspace("one"), "a", bytes, ttl=Exactly(5), purpose="tests")


@pytest.mark.parametrize("glob", ["chat", "chat:{room}:*"])
def test_a_channel_pattern_is_a_glob(glob: str) -> None:
    with pytest.raises(DeclarationError, match="glob"):
        ChannelPattern(Keyspace("one"), glob, bytes, purpose="tests")
