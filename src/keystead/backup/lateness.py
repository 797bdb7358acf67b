"""A backup that should have been taken and was not: nobody worked, or every one failed."""

import time
from collections.abc import Sequence
from typing import Final

from keystead.backup.taking import last_backup
from keystead.engine import Valkey
from keystead.operations.watchers import Trouble

FAILED: Final = "backup_failed"  # the kind of alert that one opens which was begun and failed
# A day, and time for the backup itself.
LATE_SECONDS: Final = 26 * 3600.0


class BackupLate:
    """Watches over the backup of every day. Where none was ever taken, it counts from its own beginning."""

    kind = "backup_late"

    def __init__(self, valkey: Valkey, *, late_seconds: float = LATE_SECONDS) -> None:
        self._valkey, self._late = valkey, late_seconds
        self._since = time.time()

    async def look(self) -> Sequence[Trouble]:
        last = await last_backup(self._valkey)
        taken_at = last.taken_at if last is not None else 0.0
        hours = (time.time() - (taken_at or self._since)) / 3600
        if hours * 3600 < self._late:
            return []
        says = f"the last backup was taken {hours:.0f} hours ago" if taken_at else f"no backup for {hours:.0f} hours"
        why = last.failure if last is not None and last.failed_at > taken_at else ""
        return [Trouble("daily", says + (f"; the last one failed: {why}" if why else ""))]
