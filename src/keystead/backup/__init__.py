"""Backup: one archive of Valkey, SQL and object files at one moment, and the way back."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.backup.checking import Checked, check
    from keystead.backup.cipher import read_passphrase
    from keystead.backup.installation import Installation
    from keystead.backup.keeping import keep_newest
    from keystead.backup.models import LastBackup
    from keystead.backup.restoring import Restore, Restored
    from keystead.backup.taking import Backup, Taken, last_backup
    from keystead.backup.unfinished import require_whole
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Backup",
    "Checked",
    "Installation",
    "LastBackup",
    "Restore",
    "Restored",
    "Taken",
    "check",
    "keep_newest",
    "last_backup",
    "read_passphrase",
    "require_whole",
]
