"""What the store keeps in Valkey. New fields have defaults, so that yesterday's entries can be read today."""

import msgspec


class PurgeEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An object to be purged. The fields stand in alphabetical order, so that one object has one spelling.

    ``expected``: someone wants it gone, row and all; otherwise it was announced, and goes only if no row came.
    """

    bucket: str
    expected: bool = False
    hint: str = ""
    key: str
