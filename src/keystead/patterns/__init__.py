"""Reusable behaviours over declared keys. A pattern knows no room and no meaning."""

from keystead.patterns.leader import Leader, Leadership, Term
from keystead.patterns.limits import Checked, Decision, LimitAt, WhenAway, check_all
from keystead.patterns.limits_logs import DistinctValues, Renewal, SlidingList, SlidingLog
from keystead.patterns.limits_slots import Gcra, LastUsedAt, SpacedSlots
from keystead.patterns.limits_windows import Cooldown, FixedWindow, RestartingWindow
from keystead.patterns.lock import Holding, LockHeld, LockLost
from keystead.patterns.lock_fence import Fenced
from keystead.patterns.lock_leased import LeasedLock, LeaseHolder, LockLease
from keystead.patterns.lock_plain import PlainHold, PlainLock
from keystead.patterns.lock_smart import LockFlavour, SmartAttempt, SmartLock, SmartRelease, new_lock_id

__all__ = [
    "Checked",
    "Cooldown",
    "Decision",
    "DistinctValues",
    "Fenced",
    "FixedWindow",
    "Gcra",
    "Holding",
    "LastUsedAt",
    "Leader",
    "Leadership",
    "LeaseHolder",
    "LeasedLock",
    "LimitAt",
    "LockFlavour",
    "LockHeld",
    "LockLease",
    "LockLost",
    "PlainHold",
    "PlainLock",
    "Renewal",
    "RestartingWindow",
    "SlidingList",
    "SlidingLog",
    "SmartAttempt",
    "SmartLock",
    "SmartRelease",
    "SpacedSlots",
    "Term",
    "WhenAway",
    "check_all",
    "new_lock_id",
]
