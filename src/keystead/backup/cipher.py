"""An archive under a passphrase: AES-256-GCM in pieces, each bound to its place, so that none can be left out or
moved.

The file begins with a line, then 16 bytes of salt, then pieces of up to 1 MiB and 16 bytes. The key is scrypt of
the passphrase and the salt. A nonce is three zero bytes (the key is used for one file only), the number of the
piece, and whether it is the last. Piece 0 is a known word: it tells a wrong passphrase from a damaged file.
"""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from keystead.errors import Invalid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"keystead sealed backup 2\n"
OLD_MAGIC: Final = b"keystead sealed backup 1\n"  # a third of the work for who guesses; such are still read
_ROUNDS: Final = {MAGIC: 3, OLD_MAGIC: 1}
PIECE_BYTES: Final = 1024 * 1024
LEAST_PASSPHRASE: Final = 12
_SALT_BYTES, _TAG_BYTES = 16, 16
_KNOWN: Final = b"keystead backup"


def read_passphrase(path: Path) -> bytes:
    """The passphrase in a file, without the line break at its end; ``Invalid`` for one that protects nothing."""
    try:
        found = path.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise Invalid(f"the passphrase file {path} cannot be read: {error.strerror}") from error
    if len(found) < LEAST_PASSPHRASE:
        raise Invalid(f"the passphrase in {path} has {len(found)} bytes; use {LEAST_PASSPHRASE} or more")
    return found


class SealedSink:
    """Where an archive is written through; ``close`` writes the last piece and leaves the file open."""

    def __init__(self, file: BinaryIO, passphrase: bytes) -> None:
        salt = os.urandom(_SALT_BYTES)
        self._file, self._box, self._number = file, _box(passphrase, salt, _ROUNDS[MAGIC]), 0
        self._waiting = bytearray()
        file.write(MAGIC + salt)
        self._write(_KNOWN, False)

    def write(self, some: bytes) -> int:
        self._waiting += some
        while len(self._waiting) > PIECE_BYTES:  # one piece is kept back: nobody knows yet whether it is the last
            self._write(bytes(self._waiting[:PIECE_BYTES]), False)
            del self._waiting[:PIECE_BYTES]
        return len(some)

    def flush(self) -> None:
        """Nothing: a piece leaves when it is full."""

    def close(self) -> None:
        self._write(bytes(self._waiting), True)
        self._waiting.clear()

    def _write(self, piece: bytes, last: bool) -> None:
        self._file.write(self._box.encrypt(_nonce(self._number, last), piece, None))
        self._number += 1


class SealedSource(io.RawIOBase):
    """The archive behind its passphrase, from its beginning. ``Invalid`` for a wrong one and for a damaged file."""

    def __init__(self, file: BinaryIO, passphrase: bytes) -> None:
        start = file.read(len(MAGIC) + _SALT_BYTES)
        magic, salt = start[: len(MAGIC)], start[len(MAGIC):]
        self._file, self._box, self._number = file, _box(passphrase, salt, _ROUNDS[magic]), 0
        if self._open(file.read(len(_KNOWN) + _TAG_BYTES), False) != _KNOWN:
            raise Invalid("the passphrase is not the one that this backup was made with")
        self._next = file.read(PIECE_BYTES + _TAG_BYTES)
        self._left = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer)  # type: ignore[arg-type]
        if not self._left and not self._ended:
            piece, self._next = self._next, self._file.read(PIECE_BYTES + _TAG_BYTES)
            last = not self._next
            opened = self._open(piece, last)
            if opened is None:
                raise Invalid(f"the backup is damaged or cut off at piece {self._number - 1}")
            self._left, self._ended = memoryview(opened), last
        count = min(len(target), len(self._left))
        target[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def _open(self, piece: bytes, last: bool) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            found = self._box.decrypt(_nonce(self._number, last), piece, None)
        except (InvalidTag, ValueError):
            return None
        self._number += 1
        return found


def _box(passphrase: bytes, salt: bytes, rounds: int) -> "AESGCM":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    except ImportError:
        raise Invalid("a passphrase needs another package: pip install cryptography") from None
    return AESGCM(Scrypt(salt=salt, length=32, n=2**15, r=8, p=rounds).derive(passphrase))


def _nonce(number: int, last: bool) -> bytes:
    return bytes(3) + number.to_bytes(8, "big") + bytes((last,))
