"""All declarations of a program together, checked, and able to say what a live key is."""

import random
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from keystead.errors import Ambiguous, DeclarationError
from keystead.keys.channels import ChannelPattern, OpaqueNamespace
from keystead.keys.keyspace import Declaration, Keyspace
from keystead.keys.layout import Layout
from keystead.keys.references import Reference
from keystead.keys.resolver import Resolver


class Match:
    """What a live name is: the declaration that owns it, the values of its variables, and the lane it lies in."""

    __slots__ = ("arguments", "declaration", "lane")

    def __init__(self, declaration: Declaration, arguments: dict[str, str], lane: int = 0) -> None:
        self.declaration = declaration
        self.arguments = arguments
        self.lane = lane

    def __repr__(self) -> str:
        return f"<match {self.declaration.pattern} {self.arguments}>"

    @property
    def reference(self) -> Reference:
        """The key itself, with the operations of its type. An opaque namespace or channel pattern has none."""
        return self.declaration.reference(self.arguments)


class Registry:
    """The declarations of some keyspaces, under one layout.

    Building it finds what importing cannot: two declarations that could own the same key (``Ambiguous``). Keys and
    channels are separate; an opaque namespace owns what nothing else does.
    """

    def __init__(self, keyspaces: Iterable[Keyspace], layout: Layout = Layout.PLAIN) -> None:
        self.keyspaces = tuple(keyspaces)
        self.layout = layout
        self.declarations = tuple(declaration for keyspace in self.keyspaces for declaration in keyspace)
        plain = [d for d in self.declarations if not isinstance(d, OpaqueNamespace | ChannelPattern)]
        self._keys = Resolver(((d, d.template) for d in plain if d.kind == "key"), _described)
        self._channels = Resolver(((d, d.template) for d in plain if d.kind == "channel"), _described)
        self._globs = [d for d in self.declarations if isinstance(d, ChannelPattern)]
        opaque = [d for d in self.declarations if isinstance(d, OpaqueNamespace)]
        _refuse_equal(opaque)
        self._opaque = sorted(opaque, key=lambda d: -len(d.prefix))
        self._tagged = layout is not Layout.PLAIN

    def __iter__(self) -> Iterator[Declaration]:
        return iter(self.declarations)

    def __len__(self) -> int:
        return len(self.declarations)

    def resolve(self, raw_key: bytes) -> Match | None:
        """What a key on the server is; None if nothing declares it. Takes any bytes."""
        match = self._resolve(self._keys, raw_key)
        if match is None and self._opaque:
            return self._opaque_match(raw_key)
        return match

    def resolve_channel(self, raw_channel: bytes) -> Match | None:
        """What a channel is; a channel pattern answers only for channels that nothing else declares."""
        match = self._resolve(self._channels, raw_channel)
        if match is None and self._globs:
            name = raw_channel.decode(errors="surrogateescape")
            for declaration in self._globs:
                if fnmatchcase(name, declaration.pattern):
                    return Match(declaration, {})
        return match

    def resolve_logical(self, name: str) -> Match | None:
        """What the documented name of a key is, whatever the layout."""
        found = self._keys.resolve(name)
        return Match(*found) if found is not None else self._opaque_match(name.encode(errors="surrogatepass"))

    def find(self, pattern: str) -> Declaration | None:
        """The declaration with this documented pattern; of a key before that of a channel."""
        found = [declaration for declaration in self.declarations if declaration.pattern == pattern]
        return min(found, key=lambda declaration: declaration.kind != "key", default=None)

    def sample_keys(self, rng: random.Random, each: int = 1) -> Iterator[tuple[Declaration, Mapping[str, str], bytes]]:
        """Live keys as they might be: declaration, arguments and physical name, ``each`` times for every key."""
        for declaration in self.declarations:
            if declaration.kind != "key":
                continue
            for _ in range(each):
                arguments = declaration.sample(rng)
                yield declaration, arguments, declaration.reference(arguments).name(self.layout)

    def _resolve(self, resolver: Resolver[Declaration], raw: bytes) -> Match | None:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return None
        if not self._tagged:
            found = resolver.resolve(text)
            return None if found is None else Match(found[0], found[1])
        end = text.find("}")
        if end < 0 or not text.startswith("{"):
            return None
        found = resolver.resolve(text[end + 1 :])
        if found is None:
            return None
        declaration, arguments = found
        try:
            lane = declaration.tag.lane_in(text[1:end], arguments)
        except DeclarationError:
            return None
        return None if lane is None else Match(declaration, arguments, lane)

    def _opaque_match(self, raw_key: bytes) -> Match | None:
        for declaration in self._opaque:
            if raw_key.startswith(declaration.prefix):
                return Match(declaration, {})
        return None


def _described(declaration: Declaration) -> str:
    return f"{declaration.pattern} ({declaration.room})"


def _refuse_equal(opaque: list[OpaqueNamespace]) -> None:
    seen: dict[bytes, OpaqueNamespace] = {}
    for declaration in opaque:
        other = seen.setdefault(declaration.prefix, declaration)
        if other is not declaration:
            names = _described(other), _described(declaration)
            raise Ambiguous(
                f"{names[0]} and {names[1]} are the same opaque namespace", first=names[0], second=names[1]
            )
