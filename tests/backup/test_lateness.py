"""Somebody hears that no backup was taken."""

import time

from keystead.backup.keys import LAST
from keystead.backup.lateness import BackupLate
from keystead.backup.models import LastBackup


async def test_a_backup_that_is_a_day_old_is_late(valkey):
    watcher = BackupLate(valkey)
    assert await watcher.look() == []  # none was ever taken, and nobody has waited yet
    (trouble,) = await BackupLate(valkey, late_seconds=-1).look()
    assert "no backup" in trouble.says
    await LAST.at().set(valkey, LastBackup(taken_at=time.time() - 3600))
    assert await watcher.look() == []
    await LAST.at().set(valkey, LastBackup(taken_at=time.time() - 30 * 3600, failed_at=time.time() - 9,
                                          failure="the disk is full"))
    (trouble,) = await watcher.look()
    assert "30 hours ago" in trouble.says and "disk is full" in trouble.says and trouble.subject == "daily"
    await LAST.at().set(valkey, LastBackup(taken_at=time.time() - 30 * 3600, failed_at=time.time() - 50 * 3600,
                                          failure="the disk is full"))
    (trouble,) = await watcher.look()
    assert "disk is full" not in trouble.says, "a backup went well since"
