"""The worker's door of the backup: one every day, if a directory is set for it."""

from pathlib import Path
from typing import Any, Final

from keystead.backup.keeping import keep_newest
from keystead.backup.lateness import FAILED
from keystead.backup.taking import Backup, why_failed
from keystead.errors import Invalid
from keystead.jobs import JobBook, Recurring, cron
from keystead.operations import Alerts
from keystead.settings import BackupSettings
from keystead.telemetry import counts

TAKE: Final = "keystead.backup.take"
LONGEST_SECONDS: Final = 6 * 3600.0

counts.describe("backups_taken", "backups that this process took by the calendar")
counts.describe("backups_failed", "backups by the calendar that failed")


def register(book: JobBook, backup: Backup, alerts: Alerts, settings: BackupSettings) -> None:
    """Add the daily backup to the book. One that fails opens an alert, which the next that goes well clears."""

    async def take() -> dict[str, Any]:
        directory = Path(settings.directory)
        try:
            taken = await backup.take_into(directory)
        except Exception as error:
            counts.add("backups_failed")
            await alerts.raise_(FAILED, "daily", f"The daily backup failed: {why_failed(error)}", "critical")
            raise
        counts.add("backups_taken")
        await alerts.clear(FAILED, "daily")
        removed = keep_newest(
            directory, settings.keep_files, taken.manifest.head.installation, spare=taken.path
        )
        return {"path": str(taken.path), "bytes": taken.bytes, "held_ms": taken.manifest.held_ms,
                "warnings": list(taken.manifest.warnings), "removed": len(removed)}

    book.register(TAKE, take, timeout_seconds=LONGEST_SECONDS)


def recurring(settings: BackupSettings) -> tuple[Recurring, ...]:
    """Once a day at the hour that is set, in UTC; never while no directory is set."""
    if not settings.directory:
        return ()
    if not 0 <= settings.start_hour <= 23 or settings.keep_files < 1:
        raise Invalid("backup.start_hour is an hour from 0 to 23, and backup.keep_files at least 1")
    return (Recurring(TAKE, cron(f"0 {settings.start_hour} * * *", "UTC")),)
