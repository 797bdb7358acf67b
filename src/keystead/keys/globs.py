"""The server's own wildcard for the keys of one declaration: what SCAN may leave out before we look."""

import re

from keystead.keys.channels import OpaqueNamespace
from keystead.keys.keyspace import Declaration
from keystead.keys.layout import Layout
from keystead.keys.tags import LanedTag

_SPECIAL = re.compile(r"([*?\[\]\\^-])")


def glob_of(declaration: Declaration, layout: Layout) -> bytes:
    """A glob that matches every key of the declaration; it may match others too, so resolve what it finds."""
    if isinstance(declaration, OpaqueNamespace):
        return _escaped(declaration.prefix.decode(errors="surrogateescape")).encode(errors="surrogateescape") + b"*"
    name = "".join(_escaped(part) if isinstance(part, str) else "*" for part in declaration.template.parts)
    if layout is not Layout.PLAIN:
        tag = declaration.tag
        if isinstance(tag, LanedTag):
            spelled = f"{_escaped(tag.text)}:*"
        else:
            spelled = "*" if tag.variables else _escaped(tag.of({}))
        name = f"{{{spelled}}}{name}"
    return name.encode()


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
