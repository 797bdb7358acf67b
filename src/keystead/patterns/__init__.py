"""Reusable behaviours over declared keys. A pattern knows no room and no meaning."""

from keystead.patterns.breaker import Breaker, BreakerOpen, BreakerState, FailMode, Failures, FailureShare, Permit
from keystead.patterns.cache import Cache, CacheAt
from keystead.patterns.cache_disk import DiskTier
from keystead.patterns.cache_flight import Loaded
from keystead.patterns.cache_frames import Push, PushCodec, seconds_of, version_of
from keystead.patterns.cache_instance import CacheInstance
from keystead.patterns.cache_process import ProcessTier
from keystead.patterns.counters import Counted, Counter, MonthlyCounter
from keystead.patterns.daily import CANONICAL, DailyFamily, Day, Late, LateCount
from keystead.patterns.daily_tally import Collector, Stored, Tally
from keystead.patterns.daysets import DayNumber, DaySet
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
from keystead.patterns.revocation import Revocation, Taken, Use
from keystead.patterns.rotation import RotationState

__all__ = [
    "Breaker",
    "BreakerOpen",
    "BreakerState",
    "CANONICAL",
    "Cache",
    "CacheAt",
    "CacheInstance",
    "Checked",
    "Collector",
    "Cooldown",
    "Counted",
    "Counter",
    "DailyFamily",
    "Day",
    "DayNumber",
    "DaySet",
    "Decision",
    "DiskTier",
    "DistinctValues",
    "FailMode",
    "FailureShare",
    "Failures",
    "Fenced",
    "FixedWindow",
    "Gcra",
    "Holding",
    "LastUsedAt",
    "Late",
    "LateCount",
    "Leader",
    "Leadership",
    "LeaseHolder",
    "LeasedLock",
    "LimitAt",
    "Loaded",
    "LockFlavour",
    "LockHeld",
    "LockLease",
    "LockLost",
    "MonthlyCounter",
    "Permit",
    "PlainHold",
    "PlainLock",
    "ProcessTier",
    "Push",
    "PushCodec",
    "Renewal",
    "RestartingWindow",
    "Revocation",
    "RotationState",
    "SlidingList",
    "SlidingLog",
    "SmartAttempt",
    "SmartLock",
    "SmartRelease",
    "SpacedSlots",
    "Stored",
    "Taken",
    "Tally",
    "Term",
    "Use",
    "WhenAway",
    "check_all",
    "new_lock_id",
    "seconds_of",
    "version_of",
]
