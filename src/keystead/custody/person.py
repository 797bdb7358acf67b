"""One person, by the identifiers under which others know them, and where these stand in bytes."""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

from keystead.errors import Invalid

_SHORTEST: Final = 3
_SHORT_DIGITS: Final = 10
# A letter before it belongs to another word, unless it ends an escape of a URL (%2Fann) or of JSON (\\nann).
_BEFORE: Final = rb"(?:(?<![0-9A-Za-z_])|(?<=%[0-9A-F]{2})|(?<=\\[bfnrt])|(?<=\\u[0-9A-F]{4}))"
_AFTER: Final = rb"(?![0-9A-Za-z_])"
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
        found = [(spelling.encode(), "@" in each) for each in self.ids for spelling in sorted(_spellings(each))]
        found.sort(key=lambda each: -len(each[0]))
        self.longest_bytes = max(len(raw) for raw, _ in found)
        self._anywhere = _either(re.escape(raw) for raw, _ in found)
        self._alone = _either(_BEFORE + re.escape(raw) + _AFTER for raw, _ in found)
        self._whole = _either(_whole(raw, mail) for raw, mail in found)
        self._in_bytes = _either(_unlike_its_neighbours(raw) for raw, _ in found)

    @property
    def sha256(self) -> str:
        """Stands for the person where their identifiers must not be written."""
        return hashlib.sha256("\n".join(sorted(each.lower() for each in self.ids)).encode()).hexdigest()

    def is_value(self, text: str) -> bool:
        """Whether a variable of a key has the person as its value."""
        return any(text.lower() == each.lower() for each in self.ids)

    @property
    def names(self) -> "Person | None":
        """The same person without the identifiers that are short numbers, which may as well count something."""
        names = [each for each in self.ids if not is_short_number(each)]
        return Person(names) if names else None

    def is_in(self, raw: bytes) -> bool:
        """Whether an identifier stands in these bytes, packed ones included.

        In a text it must stand alone. In other bytes, where a length or a number may touch it, no letter may touch its
        letters and no digit its digits.
        """
        return self._anyhow(raw, self._stands_in)

    def may_be_in(self, raw: bytes) -> bool:
        """Whether these bytes look as if they held an identifier, be it part of somebody else's."""
        return self._anyhow(raw, self._may_stand_in)

    def _anyhow(self, raw: bytes, stands_in: Callable[[bytes], bool]) -> bool:
        return stands_in(raw) or ((inside := unpack(raw)) is not None and stands_in(inside))

    def _stands_in(self, raw: bytes) -> bool:
        if self._anywhere.search(raw) is None:
            return False
        return self._whole.search(raw) is not None or (
            not _is_text(raw) and self._in_bytes.search(raw) is not None)

    def _may_stand_in(self, raw: bytes) -> bool:
        if self._anywhere.search(raw) is None:
            return False
        return self._alone.search(raw) is not None or not _is_text(raw)


def is_short_number(text: str) -> bool:
    """Whether an identifier could as well be a count, a price or the number of something else."""
    return text.isdigit() and len(text) <= _SHORT_DIGITS


def _either(expressions: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(expressions), re.IGNORECASE)


def _whole(raw: bytes, mail: bool) -> bytes:
    """An address is longer than it looks where a dot, a plus or a hyphen goes on: mary-ann@example.com.au."""
    if not mail:
        return _BEFORE + re.escape(raw) + _AFTER
    return rb"(?<![.+-])(?<!%2[BDE])" + _BEFORE + re.escape(raw) + _AFTER + rb"(?![.-][0-9A-Za-z])"


def _unlike_its_neighbours(raw: bytes) -> bytes:
    def like(byte: bytes) -> bytes:
        return rb"[0-9]" if byte.isdigit() else rb"[A-Za-z]" if byte.isalpha() else rb"[^\x00-\xff]"

    return rb"(?<!" + like(raw[:1]) + rb")" + re.escape(raw) + rb"(?!" + like(raw[-1:]) + rb")"


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
