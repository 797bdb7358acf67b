"""The locks that the tests of the lock pattern use."""

import contextlib
from collections.abc import Iterator
from typing import Any

from keystead.keys import IntegerKey, Keyspace, ListKey, Registry, StringKey
from keystead.patterns.lock_leased import LeasedLock
from keystead.patterns.lock_plain import PlainLock
from keystead.patterns.lock_smart import LockFlavour, SmartLock

ROOM = Keyspace("tests.locks", tag="locks")
FACTS: Any = {"writers": ("tests",), "readers": ("tests",)}
LEASE_SECONDS = 30.0  # so long that no slow machine outlives one by accident
PLAIN_SECONDS = 60.0

SMART = SmartLock(ROOM, "job:{name}:lock", purpose="one runner of a job", **FACTS)
WEB = SmartLock(ROOM, "page:{name}:lock", flavour=LockFlavour.WEB, purpose="one filler of a page", **FACTS)
PLAIN = PlainLock(ROOM, "cache:{name}:lock", lease_seconds=PLAIN_SECONDS, purpose="one filler of a cache", **FACTS)
LEASED = LeasedLock(ROOM, "door:{name}:lock", lease_seconds=LEASE_SECONDS, purpose="one at a time", **FACTS)
SHORT = LeasedLock(ROOM, "gate:{name}:lock", lease_seconds=2.0, purpose="one at a time, for a moment", **FACTS)
NUMBERED = LeasedLock(ROOM, "safe:{name}:lock", lease_seconds=LEASE_SECONDS, fence="safe:{name}:fence",
                      purpose="one writer of a safe", **FACTS)
CONTENT = StringKey(ROOM, "safe:{name}:content", str, purpose="what the writer of a safe wrote", **FACTS)
ENTRIES = ListKey(ROOM, "safe:{name}:entries", str, purpose="what the writers of a safe wrote, in order", **FACTS)
TOTAL = IntegerKey(ROOM, "safe:{name}:total", purpose="what the writers of a safe added", **FACTS)

REGISTRY = Registry([ROOM])


@contextlib.contextmanager
def patched(target: object, **values: object) -> Iterator[None]:
    """Other constants for a while, so that a test need not wait as long as people do."""
    before = {name: getattr(target, name) for name in values}
    try:
        for name, value in values.items():
            setattr(target, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)
