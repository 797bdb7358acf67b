"""Every key of touches. What is counted of them, and the runs of their jobs, is in ``stats.py``."""

from typing import Final

from keystead.keys import (
    AtMost,
    FlagKey,
    IntegerKey,
    Keyspace,
    OneOf,
    Personal,
    SetKey,
    Sliding,
    SortedSetKey,
)
from keystead.messaging.touches.models import CHANNELS, LogEntry, PendingTouch, Touch
from keystead.patterns import PendingIndex, SmartLock, WorkList

TOUCHES = Keyspace("messaging.touches", tag="msg", laned=True)

QUEUED_SECONDS: Final = 24 * 3600
INDEX_SECONDS: Final = 48 * 3600
DAY_SECONDS: Final = 2 * 86400
SAME_SECONDS: Final = 30 * 86400  # the longest that the setting may say

_DOOR: Final = ("messaging.touches.touches",)
_DISPATCHER: Final = ("messaging.touches.dispatcher",)
_HANDLERS: Final = ("messaging.touches.handlers",)
_LOG: Final = ("messaging.touches.log",)
_BOOKS: Final = ("messaging.touches.dispatcher", "messaging.touches.pending")
_GUARDED: Final = ("guarded/once.lua", "worklist/settle.lua")
_PENDING: Final = tuple(f"touches/{verb}.lua" for verb in ("success", "failed", "drop"))

# -- waiting to be sent ------------------------------------------------------------------------------------------------

# Four hundred are held at once, so most of those that a process died with did nothing to deserve it.
TRIES: Final = 10

TO_SEND: WorkList[Touch] = WorkList(
    TOUCHES, "touch:to_send", Touch, purgatory="touch:send_purgatory", personal=Personal(field="user_sub"), tries=TRIES,
    purpose="touches that wait to be made into messages", writers=_DOOR, readers=_DISPATCHER,
)
SEND_LOCK = SmartLock(
    TOUCHES, "touch:send_job:lock", purpose="one run at a time sends touches", writers=_DISPATCHER,
    readers=_DISPATCHER,
)
QUEUED = FlagKey(
    TOUCHES, "touch:queued:{uid}", ttl=AtMost(QUEUED_SECONDS), scripts=_GUARDED,
    purpose="a touch with this uid was queued; another with it is the same one", writers=_DOOR, readers=_DOOR,
)

# -- waiting for news --------------------------------------------------------------------------------------------------

PENDING: PendingIndex[PendingTouch] = PendingIndex(
    TOUCHES, "touch:pending", record="touch:pending:{uid}", of=PendingTouch, member="touch uid",
    score="when it was found that somebody can be reached", changes=None,
    purpose="touches of which it is not known yet whether they arrived", writers=_BOOKS,
    readers=("messaging.touches.pending", "messaging.touches.stale"),
)
REMAINING: SetKey[str] = SetKey(
    TOUCHES, "touch:pending:{uid}:remaining", str, member="channel message uid", scripts=_PENDING,
    purpose="messages of a touch that have not failed for good", writers=_BOOKS,
    readers=("messaging.touches.pending",),
)
STALE_LOCK = SmartLock(
    TOUCHES, "touch:stale_detection_job:lock", purpose="one run at a time looks for touches without news",
    writers=("messaging.touches.stale",), readers=("messaging.touches.stale",),
)

# -- on the way to SQL -------------------------------------------------------------------------------------------------

TO_LOG: WorkList[LogEntry] = WorkList(
    TOUCHES, "touch:to_log", LogEntry, purgatory="touch:log_purgatory", personal=True, tries=TRIES, most_dead=10_000,
    purpose="rows of touches that wait to be written to the database", writers=(*_DISPATCHER, *_HANDLERS),
    readers=_LOG,
)
LOG_LOCK = SmartLock(
    TOUCHES, "touch:log_job:lock", purpose="one run at a time writes the log of touches", writers=_LOG, readers=_LOG,
)

# -- about one person --------------------------------------------------------------------------------------------------

_CHANNEL: Final = {"channel": OneOf(*CHANNELS)}

DAY_COUNT = IntegerKey(
    TOUCHES, "touch:day_count:{user_sub}:{channel}:{unix_date}", kinds=_CHANNEL,
    ttl=Sliding(DAY_SECONDS, reads=False), personal=Personal(variable="user_sub"),
    purpose="touches to one person on one channel in one of their days", writers=_DISPATCHER, readers=_DISPATCHER,
)
RECENT_WORDS: SortedSetKey[str] = SortedSetKey(
    TOUCHES, "touch:recent_words:{user_sub}", str, member="SHA-256 of words", score="unix time when they were queued",
    ttl=AtMost(SAME_SECONDS), personal=Personal(variable="user_sub"),
    purpose="what one person was told just now, so that it is not said twice", writers=_DISPATCHER,
    readers=_DISPATCHER,
)
BY_USER: SetKey[str] = SetKey(
    TOUCHES, "msg:by_user:{user_sub}", str, member="uid of a touch or of a channel message",
    ttl=Sliding(INDEX_SECONDS, reads=False), personal=Personal(variable="user_sub"),
    purpose="what is on its way to one person", writers=(*_DOOR, *_DISPATCHER),
    readers=("messaging.touches.erased", "messaging.touches.history"),
)
ERASED = FlagKey(
    TOUCHES, "msg:erased:{user_sub}", ttl=AtMost(INDEX_SECONDS), personal=Personal(variable="user_sub"),
    purpose="a person was erased just now: nothing is sent to them, nothing is tried again",
    writers=("messaging.touches.erased",), readers=(*_DISPATCHER, *_HANDLERS),
)

# -- touch points ------------------------------------------------------------------------------------------------------

POINTS_VERSION = IntegerKey(
    TOUCHES, "touch:points_version", purpose="grows with each change of a touch point, so that processes read anew",
    writers=("messaging.touches.points",), readers=("messaging.touches.points",),
)
