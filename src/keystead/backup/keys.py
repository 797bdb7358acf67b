"""Every key of the backup."""

from keystead.backup.models import LastBackup
from keystead.keys import Keyspace, RecordKey

BACKUP = Keyspace("backup", tag="backup")

LAST: RecordKey[LastBackup] = RecordKey(
    BACKUP, "backup:last", LastBackup,
    purpose="when the last backup was taken, where it lies and how it went; and when one last failed",
    writers=("backup.taking",), readers=("backup.taking", "web.dashboard"),
)
