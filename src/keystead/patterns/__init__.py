"""Reusable behaviours over declared keys. A pattern knows no room and no meaning."""

from keystead.patterns.breaker import Breaker, BreakerOpen, BreakerState, FailMode, Failures, FailureShare, Permit
from keystead.patterns.buffer import Buffer, BufferBatch
from keystead.patterns.cache import Cache, CacheAt
from keystead.patterns.cache_disk import DiskTier
from keystead.patterns.cache_flight import Loaded
from keystead.patterns.cache_frames import Push, PushCodec, seconds_of, version_of
from keystead.patterns.cache_instance import CacheInstance
from keystead.patterns.cache_process import ProcessTier
from keystead.patterns.cohorts import Cohorts
from keystead.patterns.counters import Counted, Counter, MonthlyCounter
from keystead.patterns.daily import CANONICAL, DailyFamily, Day, Late, LateCount
from keystead.patterns.daily_identities import Broken, Identity
from keystead.patterns.daily_tally import Collector, Stored, Tallies, Tally
from keystead.patterns.daysets import DayNumber, DaySet
from keystead.patterns.delayed import DelayedSet, IfWaiting, MovedDue, MoveStop
from keystead.patterns.delayed_worker import DelayedWorker, DueItem, DueItems, Settled
from keystead.patterns.facts import PatternFacts
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_blacklist import Blacklisted
from keystead.patterns.fairqueue_consumer import FairConsumer
from keystead.patterns.fairqueue_keys import BlacklistReason, Keepalives, QueueGate
from keystead.patterns.fairqueue_lanes import FairLanes, lane_names
from keystead.patterns.fairqueue_values import Leased, LeasedBatch, Parked, Produced, Requeued, Restored, Woken
from keystead.patterns.fanout import FanOut, FanOutHere
from keystead.patterns.fanout_room import Envelope, Event, FanOutListener, TooSlow
from keystead.patterns.guarded import Once, Writes, judged, once
from keystead.patterns.leader import Following, Leader, Leadership, Term
from keystead.patterns.limits import Checked, Decision, LimitAt, WhenAway, check_all
from keystead.patterns.limits_logs import DistinctAttempts, DistinctValues, Renewal, SlidingList, SlidingLog
from keystead.patterns.limits_slots import Gcra, GcraRate, LastUsedAt, SpacedSlots
from keystead.patterns.limits_windows import Cooldown, FixedWindow, RestartingWindow
from keystead.patterns.lock import Holding, LockHeld, LockLost
from keystead.patterns.lock_fence import Fenced
from keystead.patterns.lock_lease import LeaseHolder, LockLease
from keystead.patterns.lock_leased import LeasedLock
from keystead.patterns.lock_plain import PlainHold, PlainLock
from keystead.patterns.lock_smart import LockFlavour, SmartAttempt, SmartLock, SmartRelease, new_lock_id
from keystead.patterns.outbox import Delivery, Inbox, Outbox, OutboxEntry, Relayed
from keystead.patterns.pending import BrokenRecord, PendingEntries, PendingEntry, PendingIndex, PendingOutcome
from keystead.patterns.presence import OnlineMarkers, Presence, PresenceHere
from keystead.patterns.revocation import Revocation, TokenTaken, TokenUse
from keystead.patterns.rotation import RotationState
from keystead.patterns.rows_by_day import LateChange, LateRow, RowsAdded, RowsByDay
from keystead.patterns.views import TOTALS_NAMES, AllTimeViews, DimensionViews, Viewed, ViewNames, Views
from keystead.patterns.worklist import WorkList
from keystead.patterns.worklist_items import DeadLetter, Item, Spoiled, TakenItems
from keystead.patterns.worklist_worker import Failed, Finished, Recovered, Worker

__all__ = [
    "AllTimeViews",
    "BlacklistReason",
    "Blacklisted",
    "Breaker",
    "BreakerOpen",
    "BreakerState",
    "Broken",
    "BrokenRecord",
    "Buffer",
    "BufferBatch",
    "CANONICAL",
    "Cache",
    "CacheAt",
    "CacheInstance",
    "Checked",
    "Cohorts",
    "Collector",
    "Cooldown",
    "Counted",
    "Counter",
    "DailyFamily",
    "Day",
    "DayNumber",
    "DaySet",
    "DeadLetter",
    "Decision",
    "DelayedSet",
    "DelayedWorker",
    "Delivery",
    "DimensionViews",
    "DiskTier",
    "DistinctAttempts",
    "DistinctValues",
    "DueItem",
    "DueItems",
    "Envelope",
    "Event",
    "FailMode",
    "Failed",
    "FailureShare",
    "Failures",
    "FairConsumer",
    "FairLanes",
    "FairQueue",
    "FanOut",
    "FanOutHere",
    "FanOutListener",
    "Fenced",
    "Finished",
    "FixedWindow",
    "Following",
    "Gcra",
    "GcraRate",
    "Holding",
    "Identity",
    "IfWaiting",
    "Inbox",
    "Item",
    "Keepalives",
    "LastUsedAt",
    "Late",
    "LateChange",
    "LateCount",
    "LateRow",
    "Leader",
    "Leadership",
    "LeaseHolder",
    "Leased",
    "LeasedBatch",
    "LeasedLock",
    "LimitAt",
    "Loaded",
    "LockFlavour",
    "LockHeld",
    "LockLease",
    "LockLost",
    "MonthlyCounter",
    "MoveStop",
    "MovedDue",
    "Once",
    "OnlineMarkers",
    "Outbox",
    "OutboxEntry",
    "Parked",
    "PatternFacts",
    "PendingEntries",
    "PendingEntry",
    "PendingIndex",
    "PendingOutcome",
    "Permit",
    "PlainHold",
    "PlainLock",
    "Presence",
    "PresenceHere",
    "ProcessTier",
    "Produced",
    "Push",
    "PushCodec",
    "QueueGate",
    "Recovered",
    "Relayed",
    "Renewal",
    "Requeued",
    "RestartingWindow",
    "Restored",
    "Revocation",
    "RotationState",
    "RowsAdded",
    "RowsByDay",
    "Settled",
    "SlidingList",
    "SlidingLog",
    "SmartAttempt",
    "SmartLock",
    "SmartRelease",
    "SpacedSlots",
    "Spoiled",
    "Stored",
    "TOTALS_NAMES",
    "TakenItems",
    "Tallies",
    "Tally",
    "Term",
    "TokenTaken",
    "TokenUse",
    "TooSlow",
    "ViewNames",
    "Viewed",
    "Views",
    "WhenAway",
    "Woken",
    "WorkList",
    "Worker",
    "Writes",
    "check_all",
    "judged",
    "lane_names",
    "new_lock_id",
    "once",
    "seconds_of",
    "version_of",
]
