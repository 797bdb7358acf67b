"""Object files: named bytes outside of SQL, in a directory or in a bucket. One interface, opened by its URL.

``file:///var/lib/keystead/files`` is a directory. ``s3://BUCKET/PREFIX?region=eu-central-1`` is a bucket; ``endpoint``
and ``path_style`` in the query reach servers other than Amazon's. Credentials come from the environment as usual for
S3, or stand in the URL (``s3://ID:SECRET@BUCKET``).
"""

import re
import secrets
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from keystead.errors import Invalid

CHUNK_BYTES: Final = 256 * 1024
MOST_KEY_CHARACTERS: Final = 900
DEFAULT_BUCKET: Final = "files"
DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"

# A segment may not begin with a dot, so no key names its parent, a hidden file, or the room for unfinished writes.
_KEY = re.compile(r"[A-Za-z0-9_=~-][A-Za-z0-9._=~-]{0,199}(?:/[A-Za-z0-9_=~-][A-Za-z0-9._=~-]{0,199})*")
# What ``new_key`` gives: anything else in the same place belongs to somebody else.
_GIVEN = re.compile(r".+/[A-Za-z0-9_-]{22}")


class ObjectFiles(Protocol):
    """Where objects lie. Every operation may raise ``Unavailable`` or ``GatewayError``; ``Invalid`` for a bad key.

    No operation holds more than one bounded piece of an object in memory.
    """

    @property
    def bucket(self) -> str:
        """What this place is called in ``files:purgatory``."""
        ...

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], *, content_type: str = DEFAULT_CONTENT_TYPE
    ) -> int:
        """Store what ``chunks`` gives and return its length. All or nothing: the object appears whole at the end.

        An object of that name is replaced. If ``chunks`` raises, nothing appears. A ``delete`` that comes before the
        end makes the write fail.
        """
        ...

    def read(self, key: str, *, start_byte: int = 0, end_byte: int | None = None) -> AsyncIterator[bytes]:
        """The object, or its bytes from ``start_byte`` to ``end_byte``, both included. ``NotFound`` if there is none.
        """
        ...

    async def size(self, key: str) -> int | None:
        """Its length in bytes; None if there is no such object."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the object and whatever a write of it left unfinished. That there is none is success too."""
        ...

    def keys(self, under: str = "") -> AsyncIterator[str]:
        """Every key that begins with ``under``, in no order; unfinished writes have none."""
        ...


def open_files(url: str) -> AbstractAsyncContextManager[ObjectFiles]:
    """The place that the URL names, for as long as the block runs. ``Invalid`` says how to mend a bad URL."""
    try:
        parts = urlsplit(url)
        query = {name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
    except ValueError:
        raise Invalid("the address of the files cannot be read; it looks like file:///DIR or s3://BUCKET") from None
    if parts.scheme == "file":
        return _directory(parts, query)
    if parts.scheme == "s3":
        from keystead.store.files_s3 import open_s3  # its client is large and only some installations have it

        return open_s3(parts, query)
    raise Invalid(f"files cannot lie at {parts.scheme or 'an address without a scheme'}: use file:///DIR or s3://BUCKET")


def is_key(text: str) -> bool:
    """Whether it can name an object anywhere."""
    return len(text) <= MOST_KEY_CHARACTERS and _KEY.fullmatch(text) is not None


def checked_key(key: str) -> str:
    """The key, if it can name an object anywhere; otherwise ``Invalid``."""
    if not is_key(key):
        raise Invalid(
            "this cannot name a file: names are letters, digits and . _ = ~ - in parts divided by /, no part begins "
            f"with a dot or is longer than 200, {MOST_KEY_CHARACTERS} in all"
        )
    return key


def new_key(under: str) -> str:
    """A key below ``under`` that no object ever had; ``Invalid`` if that cannot begin one."""
    return checked_key(f"{under}/{secrets.token_urlsafe(16)}")


def may_be_given(key: str) -> bool:
    """Whether the key looks like one of ``new_key``."""
    return _GIVEN.fullmatch(key) is not None


async def in_pieces(chunks: AsyncIterable[bytes], piece_bytes: int) -> AsyncIterator[bytes]:
    """The same bytes in pieces of one size, except the last; at most one piece and one chunk are held."""
    waiting = bytearray()
    async for chunk in chunks:
        waiting += chunk
        while len(waiting) >= piece_bytes:
            yield bytes(waiting[:piece_bytes])
            del waiting[:piece_bytes]
    if waiting:
        yield bytes(waiting)


def refuse_unknown(query: dict[str, str], *known: str) -> None:
    """``Invalid`` for an option that this kind of address does not have."""
    unknown = sorted(set(query) - set(known))
    if unknown:
        raise Invalid(f"the address of the files has an unknown option {unknown[0]}; there are {', '.join(known)}")


def _directory(parts: SplitResult, query: dict[str, str]) -> AbstractAsyncContextManager[ObjectFiles]:
    from keystead.store.files_directory import open_directory

    refuse_unknown(query, "bucket")
    if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
        raise Invalid("a directory of files is written file:///DIR, with three slashes before an absolute path")
    return open_directory(Path(unquote(parts.path)), query.get("bucket", DEFAULT_BUCKET))
