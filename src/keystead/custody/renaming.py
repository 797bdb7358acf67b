"""From a name in one layout to the same key's name in another."""

from collections.abc import Callable

from keystead.errors import DeclarationError
from keystead.keys import Layout, Registry


def renaming(registry: Registry, after: Layout) -> Callable[[bytes], bytes | None]:
    """New names for the keys of a registry, whose own layout is that of the old names. Other keys have none."""

    def rename(raw_key: bytes) -> bytes | None:
        match = registry.resolve(raw_key)
        if match is None or match.declaration.kind != "key":
            return None
        try:
            return match.declaration.reference(match.arguments).name(after)
        except DeclarationError:  # a value that the other layout cannot hold
            return None

    return rename
