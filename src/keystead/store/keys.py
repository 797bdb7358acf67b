"""Every key of the store."""

from typing import Final

from keystead.keys import AtMost, FlagKey, FlagRef, Keyspace, MapKey, SortedSetKey
from keystead.patterns import LeasedLock
from keystead.store.models import PurgeEntry

STORE = Keyspace("store", tag="store")

_FILES: Final = "files"  # the tag of whatever the sweep of files touches
_SCRIPTS: Final = ("store/purgatory_take.lua", "store/purgatory_fail.lua", "store/purgatory_finish.lua")

FILES_PURGATORY = SortedSetKey(
    STORE, "files:purgatory", PurgeEntry, member="bucket and key of an object, with sorted fields",
    score="unix time from which it is to be purged", tag=_FILES, scripts=_SCRIPTS,
    purpose="objects that may lie in the bucket without a row, and objects that someone wants gone",
    writers=("store.files_kept", "store.sweep"), readers=("store.sweep",),
)
FILES_PURGE_FAILURES: MapKey[int] = MapKey(
    STORE, "files:purgatory:failures", int, tag=_FILES, scripts=_SCRIPTS,
    purpose="how often the purge of an entry failed; the field is the entry as it stands in the list",
    writers=("store.sweep",), readers=("store.sweep",),
)
FILES_SWEEP = LeasedLock(
    STORE, "files:purgatory:lock", lease_seconds=30.0, tag=_FILES, purpose="one sweep of files at a time",
    writers=("store.sweep",), readers=("store.sweep",),
)

# -- the outbox --------------------------------------------------------------------------------------------------------

# As long as the database may be away after a job was queued and before its row is gone.
SENT_SECONDS: Final = 30 * 86400
# Once the row is gone, only a relay that had read it before can still bring it.
SENT_AND_GONE_SECONDS: Final = 3600


def _sent(pattern: str, tag: str) -> FlagKey:
    return FlagKey(
        STORE, pattern, tag=tag, ttl=AtMost(SENT_SECONDS), scripts=("store/outbox_queue.lua",),
        purpose="a job of the SQL outbox that was queued, so that it is not queued again; beside its queue",
        writers=("store.outbox",), readers=("store.outbox",),
    )


_SENT_HOT: Final = _sent("store:outbox:sent:{uid}", "jobs")
_SENT_NAMED: Final = _sent("store:outbox:sent:{queue}:{uid}", "jobs:{queue}")


def sent_mark(queue: str, uid: str) -> FlagRef:
    """Says that a job was queued. It has the tag of the queue, and so can be written in one step with the job."""
    return _SENT_NAMED.at(queue=queue, uid=uid) if queue else _SENT_HOT.at(uid=uid)
