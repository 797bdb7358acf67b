"""One person, by the identifiers under which others know them, and where these stand in bytes."""

import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from keystead.errors import Invalid

_SHORTEST: Final = 3
_LARGEST_UNPACKED: Final = 16 * 1024 * 1024
_GZIP_OR_ZLIB: Final = 47  # as zlib numbers its formats
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class Person:
    """The identifiers of one person. Matching is by whole identifiers: ``u1`` is not in ``u12``."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = tuple(dict.fromkeys(each.strip() for each in ids if each.strip()))
        if not self.ids:
            raise Invalid("name the person: --person ID, and again for each other identifier (an address, a number)")
        short = [each for each in self.ids if len(each) < _SHORTEST]
        if short:
            raise Invalid(f"{short[0]!r} is too short for an identifier: it would be found in everybody's data")
        spellings = {spelling for each in self.ids for spelling in _spellings(each)}
        self._raw = sorted((each.encode() for each in spellings), key=len, reverse=True)
        self.longest_bytes = max(map(len, self._raw))
        either = b"|".join(map(re.escape, self._raw))
        self._anywhere = re.compile(either, re.IGNORECASE)
        self._whole = re.compile(rb"(?<![0-9A-Za-z_])(?:" + either + rb")(?![0-9A-Za-z_])", re.IGNORECASE)

    @property
    def sha256(self) -> str:
        """Stands for the person where their identifiers must not be written."""
        return hashlib.sha256("\n".join(sorted(each.lower() for each in self.ids)).encode()).hexdigest()

    def is_value(self, text: str) -> bool:
        """Whether a variable of a key has the person as its value."""
        return any(text.lower() == each.lower() for each in self.ids)

    def is_in(self, raw: bytes) -> bool:
        """Whether an identifier stands in these bytes, packed ones included.

        In a text it must stand alone. In other bytes, where a length or a number may touch it, anywhere.
        """
        return self._stands_in(raw) or ((inside := unpack(raw)) is not None and self._stands_in(inside))

    def _stands_in(self, raw: bytes) -> bool:
        if self._anywhere.search(raw) is None:
            return False
        return self._whole.search(raw) is not None or not _is_text(raw)


def _spellings(text: str) -> set[str]:
    """An identifier as it may be written in names, JSON and URLs."""
    return {text, quote(text, safe=""), quote(text), json.dumps(text)[1:-1]}


def _is_text(raw: bytes) -> bool:
    try:
        return raw.decode().isprintable() or raw.decode().isascii()
    except UnicodeDecodeError:
        return False


def unpack(raw: bytes) -> bytes | None:
    """What is inside a compressed value (gzip, zlib, zstd), up to a bound; None if it is not one."""
    try:
        if raw[:2] == b"\x1f\x8b" or (raw[:1] == b"\x78" and int.from_bytes(raw[:2], "big") % 31 == 0):
            return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(raw, _LARGEST_UNPACKED)
        if raw[:4] == _ZSTD:
            import zstandard

            return bytes(zstandard.ZstdDecompressor().stream_reader(raw).read(_LARGEST_UNPACKED))
    except (zlib.error, ImportError):
        return None
    except Exception as error:  # zstandard has an error of its own, and may not be there to name it
        if type(error).__name__ != "ZstdError":
            raise
    return None
