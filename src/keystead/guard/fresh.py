"""Keys that were made without an expiry and should have one: remembered for a short time, in case it still comes."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

_MOST_WAITING: Final = 10_000
_MOST_SETTLED: Final = 10_000


class Waiting(NamedTuple):
    """A key whose expiry has not come yet, and the command that made it."""

    pattern: str
    command: str
    since: float


class FreshKeys:
    """Keys of entries that must expire. Both memories are bounded; what came first leaves first.

    A key is the same whether it is spelled as text or as bytes.
    """

    def __init__(self, grace_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._grace_seconds = grace_seconds
        self._now = now
        self._waiting: OrderedDict[Any, Waiting] = OrderedDict()
        # Keys that were given an expiry: a later INCR keeps it.
        self._settled: dict[Any, None] = {}
        self._settled_before: dict[Any, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def made(self, key: Any, pattern: str, command: str) -> None:
        key = _text(key)
        if key in self._waiting or key in self._settled or key in self._settled_before:
            return
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popitem(last=False)
        self._waiting[key] = Waiting(pattern, command, self._now())

    def expires(self, key: Any) -> None:
        """It was given an expiry, or nobody can say whether it was."""
        if key.__class__ is not str:
            key = _text(key)
        if self._waiting:
            self._waiting.pop(key, None)
        if len(self._settled) >= _MOST_SETTLED:
            self._settled_before, self._settled = self._settled, {}
        self._settled[key] = None

    def gone(self, key: Any) -> None:
        key = _text(key)
        for memory in (self._waiting, self._settled, self._settled_before):
            memory.pop(key, None)

    def overdue(self) -> Iterator[tuple[Any, Waiting]]:
        """Keys whose expiry did not come in time; each is given once."""
        limit = self._now() - self._grace_seconds
        for key, waiting in list(self._waiting.items()):
            if waiting.since > limit:
                return
            if self._waiting.pop(key, None) is not None:
                yield key, waiting


def _text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key).decode(errors="surrogateescape")
    return str(key)
