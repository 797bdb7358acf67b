"""Every key of the backup."""

from keystead.backup.models import LastBackup, Restoring
from keystead.keys import Keyspace, RecordKey, StringKey

BACKUP = Keyspace("backup", tag="backup")

LAST: RecordKey[LastBackup] = RecordKey(
    BACKUP, "backup:last", LastBackup,
    purpose="when the last backup was taken, where it lies and how it went; and when one last failed",
    writers=("backup.taking",), readers=("backup.taking", "web.dashboard"),
)

IDENTITY: StringKey[str] = StringKey(
    BACKUP, "backup:identity", str,
    purpose="what the backups of this installation are called after; a restored installation gets a new one",
    writers=("backup.taking", "backup.restoring"), readers=("backup.taking",),
)

RESTORING: RecordKey[Restoring] = RecordKey(
    BACKUP, "backup:restoring", Restoring,
    purpose="a restore to this server has begun and not ended: nothing starts here while it is there",
    writers=("backup.unfinished",), readers=("backup.unfinished",),
)
