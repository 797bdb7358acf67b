"""Reusable behaviours over declared keys. A pattern knows no room and no meaning."""

from keystead.patterns.lock import Holding, LockHeld, LockLost
from keystead.patterns.lock_fence import Fenced
from keystead.patterns.lock_leased import LeasedLock, LeaseHolder, LockLease
from keystead.patterns.lock_plain import PlainHold, PlainLock
from keystead.patterns.lock_smart import LockFlavour, SmartAttempt, SmartLock, SmartRelease, new_lock_id

__all__ = [
    "Fenced",
    "Holding",
    "LeaseHolder",
    "LeasedLock",
    "LockFlavour",
    "LockHeld",
    "LockLease",
    "LockLost",
    "PlainHold",
    "PlainLock",
    "SmartAttempt",
    "SmartLock",
    "SmartRelease",
    "new_lock_id",
]
