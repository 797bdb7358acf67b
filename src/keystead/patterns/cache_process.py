"""The process tier: raw bytes in memory, bounded, the least recently used go first."""

from collections import OrderedDict
from collections.abc import Iterator

from keystead.telemetry import counts

# What an entry costs beside its bytes, roughly: the objects that hold it and its place in the table.
ENTRY_BYTES = 300

counts.describe("cache_evicted", "entries that a cache tier dropped because it was full")


class Entry:
    """A value as it is kept: the bytes, or None for a value known to be absent. Times are unix seconds."""

    __slots__ = ("collab", "expires_at", "family", "fresh_until", "raw")

    def __init__(
        self, raw: bytes | None, family: str, fresh_until: float, expires_at: float, collab: bool
    ) -> None:
        self.raw = raw
        self.family = family
        self.fresh_until = fresh_until
        self.expires_at = expires_at
        self.collab = collab


class ProcessTier:
    """Values of any number of families in this process, together at most ``most_bytes``.

    Holds bytes only, never objects, so what is read cannot be changed for others. Each step costs O(1).
    """

    def __init__(self, most_bytes: int = 64 * 1024 * 1024) -> None:
        self.most_bytes = most_bytes
        self.used_bytes = 0
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[str, Entry]]:
        """Everything that is kept, expired or not; must not be changed meanwhile."""
        return iter(self._entries.items())

    def get(self, key: str, now: float) -> Entry | None:
        """What is kept under ``key`` and has not expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at <= now:
            self.forget(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """Keep it, and drop the least recently used if there is no room. A value larger than the tier is not kept."""
        self.forget(key)
        size = _size(key, entry)
        if size > self.most_bytes:
            return
        self._entries[key] = entry
        self.used_bytes += size
        while self.used_bytes > self.most_bytes:
            oldest, dropped = self._entries.popitem(last=False)
            self.used_bytes -= _size(oldest, dropped)
            counts.add("cache_evicted", tier="process")

    def forget(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.used_bytes -= _size(key, entry)


def _size(key: str, entry: Entry) -> int:
    return len(key) + (0 if entry.raw is None else len(entry.raw)) + ENTRY_BYTES
