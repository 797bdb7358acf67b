"""What is no key of ours: channels, subscriptions by pattern, and the keys of other programs."""

from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar, Unpack

from keystead.errors import DeclarationError
from keystead.keys.codecs import Codec, Of, codec_of
from keystead.keys.keyspace import Declaration, Facts, Keyspace
from keystead.keys.layout import Layout
from keystead.keys.references_streams import ChannelRef
from keystead.keys.tags import FixedTag
from keystead.keys.ttl import NO_TTL
from keystead.keys.variables import CONTROL, Value

T = TypeVar("T")


class Channel(Declaration, Generic[T]):
    """A channel whose messages are of one type."""

    kind = "channel"
    type = "channel"

    def __init__(self, keyspace: Keyspace, pattern: str, of: Of[T], **facts: Unpack[Facts]) -> None:
        self.codec: Codec[T] = codec_of(of)
        _refuse_ttl(pattern, facts)
        super().__init__(keyspace, pattern, **facts)

    def at(self, *variables: Value, **named: Value) -> ChannelRef[T]:
        return ChannelRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> ChannelRef[T]:
        return self.at(**arguments)


class ChannelPattern(Declaration, Generic[T]):
    """A subscription to every channel that fits a glob such as ``chat:event:*``.

    It names listeners, not messages of its own. Sharded channels know no globs, so the tagged layout has no name
    for it.
    """

    kind: ClassVar[str] = "channel"
    type = "channel pattern"

    def __init__(self, keyspace: Keyspace, glob: str, of: Of[T], **facts: Unpack[Facts]) -> None:
        if "*" not in glob or "{" in glob:
            raise DeclarationError(f"{glob}: a channel pattern is a glob with a *, without placeholders")
        self.codec: Codec[T] = codec_of(of)
        _refuse_ttl(glob, facts)
        super().__init__(keyspace, glob, **facts)

    def glob(self, layout: Layout) -> bytes:
        """What to give PSUBSCRIBE."""
        if layout is not Layout.PLAIN:
            raise DeclarationError(f"{self.pattern}: sharded channels cannot be subscribed by pattern; name each one")
        return self.pattern.encode()


class OpaqueNamespace(Declaration):
    """Keys that belong to another program, such as ``asynq:*``: known, never judged, the same in both layouts."""

    kind = "opaque"
    type = "opaque"

    def __init__(self, keyspace: Keyspace, pattern: str, **facts: Unpack[Facts]) -> None:
        if not pattern.endswith("*") or len(pattern) < 2 or "*" in pattern[:-1] or CONTROL.search(pattern):
            raise DeclarationError(f"{pattern!r}: an opaque namespace is a prefix and a star, such as 'asynq:*'")
        _refuse_ttl(pattern, facts)
        self.prefix = pattern[:-1].encode()
        super().__init__(keyspace, pattern.replace("{", "").replace("}", ""), **facts)
        self.pattern = pattern
        self.tag = FixedTag("")


def _refuse_ttl(pattern: str, facts: Facts) -> None:
    if facts.get("ttl", NO_TTL) is not NO_TTL:
        raise DeclarationError(f"{pattern}: only keys expire, so it takes no ttl")
