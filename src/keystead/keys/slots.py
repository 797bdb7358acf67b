"""Which of a cluster's 16384 slots a key lies in."""

from binascii import crc_hqx
from typing import Final

SLOTS: Final = 16384


def hash_tag(raw_key: bytes) -> bytes:
    """The part of a key that decides its slot: what stands in its first braces if that is not empty, else all of it."""
    start = raw_key.find(b"{")
    if start >= 0:
        end = raw_key.find(b"}", start + 1)
        if end > start + 1:
            return raw_key[start + 1 : end]
    return raw_key


def key_slot(raw_key: bytes) -> int:
    """The slot of a key, as the server computes it (CRC16 XMODEM of the hash tag)."""
    return crc_hqx(hash_tag(raw_key), 0) % SLOTS
