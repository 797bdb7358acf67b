"""The disk tier: one checksummed file for each value, so that a restart need not begin cold."""

import contextlib
import hashlib
import os
import struct
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from keystead.patterns.cache_process import Entry
from keystead.telemetry import counts, logger

_MAGIC = b"KSC1"
# Magic, flags, fresh until, expires at, length of the family, of the key, of the value; then these, then the checksum.
_HEAD = struct.Struct(">4sBddHIQ")
_DIGEST_BYTES = 16
_COLLAB, _ABSENT = 1, 2

counts.describe("cache_disk_refused", "files of the disk tier that were damaged and removed")

_log = logger("patterns")


class DiskTier:
    """Values in the files of one directory, which must belong to this process alone; at most ``most_bytes``.

    A file appears whole or not at all; one that was damaged is removed and counts as a miss. Opening removes every
    entry that is only right while the channel is heard. Files are read and written in place, without a thread: keep
    values small (``most_entry_bytes``).
    """

    def __init__(
        self, directory: Path, most_bytes: int = 1024 * 1024 * 1024, *, most_entry_bytes: int = 1024 * 1024
    ) -> None:
        self.directory = directory
        self.most_bytes = most_bytes
        self.most_entry_bytes = most_entry_bytes
        self.used_bytes = 0
        self._files: OrderedDict[str, tuple[int, str, bool]] = OrderedDict()  # key: size, family, collab
        directory.mkdir(parents=True, exist_ok=True)
        self._take_stock()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, key: str, now: float) -> Entry | None:
        """What is kept under ``key``, whole and not expired."""
        if key not in self._files:
            return None
        found = _read(self._path(key))
        if found is None or found[0] != key:
            counts.add("cache_disk_refused")
            self.forget(key)
            return None
        if found[1].expires_at <= now:
            self.forget(key)
            return None
        self._files.move_to_end(key)
        return found[1]

    def put(self, key: str, entry: Entry) -> None:
        """Keep it; the least recently used make room. A full disk loses the entry, never the caller's answer."""
        self.forget(key)
        raw = _file(key, entry)
        if len(raw) > min(self.most_bytes, self.most_entry_bytes):
            return
        path = self._path(key)
        unfinished = path.with_suffix(".new")
        try:
            unfinished.write_bytes(raw)
            unfinished.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            return
        self._files[key] = len(raw), entry.family, entry.collab
        self.used_bytes += len(raw)
        while self.used_bytes > self.most_bytes:
            counts.add("cache_evicted", tier="disk")
            self.forget(next(iter(self._files)))

    def forget(self, key: str) -> None:
        known = self._files.pop(key, None)
        if known is not None:
            self.used_bytes -= known[0]
            try:
                self._path(key).unlink(missing_ok=True)
            except OSError as error:
                # Not used again by this process; the next one would find it.
                _log.error("file of the disk tier not removed", directory=str(self.directory), reason=str(error))

    def items(self) -> Iterator[tuple[str, str, bool]]:
        """Key, family, and whether it depends on the channel, of everything; must not be changed meanwhile."""
        return ((key, family, collab) for key, (_, family, collab) in self._files.items())

    def _path(self, key: str) -> Path:
        return self.directory / f"{hashlib.sha256(key.encode()).hexdigest()}.entry"

    def _take_stock(self) -> None:
        """Learn what an earlier process left; remove what is unfinished, damaged or tied to the channel."""
        found: list[tuple[float, str, int, str]] = []
        for path in self.directory.iterdir():
            if path.suffix not in (".new", ".entry"):
                continue
            content = _read(path) if path.suffix == ".entry" else None
            if content is None or content[1].collab or self._path(content[0]) != path:
                path.unlink()
                continue
            found.append((path.stat().st_mtime, content[0], path.stat().st_size, content[1].family))
        for _, key, size, family in sorted(found):
            self._files[key] = size, family, False
            self.used_bytes += size
        while self.used_bytes > self.most_bytes:
            self.forget(next(iter(self._files)))


def _file(key: str, entry: Entry) -> bytes:
    flags = (_COLLAB if entry.collab else 0) | (_ABSENT if entry.raw is None else 0)
    name, family, value = key.encode(), entry.family.encode(), entry.raw or b""
    head = _HEAD.pack(_MAGIC, flags, entry.fresh_until, entry.expires_at, len(family), len(name), len(value))
    body = head + family + name + value
    return body + hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _read(path: Path) -> tuple[str, Entry] | None:
    """Key and entry of a file; None if any byte of it is not as it was written."""
    try:
        with path.open("rb") as file:
            raw = file.read(os.fstat(file.fileno()).st_size)
    except OSError:
        return None
    body, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
    if len(body) < _HEAD.size or hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != digest:
        return None
    magic, flags, fresh_until, expires_at, family_length, key_length, length = _HEAD.unpack_from(body)
    if magic != _MAGIC or len(body) != _HEAD.size + family_length + key_length + length:
        return None
    name_at = _HEAD.size + family_length
    value_at = name_at + key_length
    family, key = body[_HEAD.size : name_at].decode(), body[name_at:value_at].decode()
    value = None if flags & _ABSENT else body[value_at:]
    return key, Entry(value, family, fresh_until, expires_at, bool(flags & _COLLAB))
