"""The worker's door of the store: the sweep of files, uploads whose time is over, deletions that follow a transaction.
"""

from typing import Final

from keystead.jobs import JobBook, Recurring, cron
from keystead.store.sweep import Sweep
from keystead.store.uploads import DELETE_FILES, Uploads

SWEEP_FILES: Final = "keystead.store.sweep_files"
LIST_STRAYS: Final = "keystead.store.list_stray_files"
EXPIRE_UPLOADS: Final = "keystead.store.expire_uploads"
DISCARD_UPLOAD: Final = "keystead.store.discard_upload"


def register(book: JobBook, sweep: Sweep, uploads: Uploads) -> None:
    """Add the jobs of the store to the book."""

    async def sweep_files() -> dict[str, int]:
        report = await sweep.run()
        return {"purged": report.purged, "kept": report.kept, "failed": report.failed}

    async def list_strays() -> int:
        return await sweep.list_strays()

    async def expire_uploads() -> int:
        return await uploads.expire()

    async def discard_upload(upload_uid: str, progress_uid: str = "") -> None:
        await uploads.discard(upload_uid)

    async def delete_files(keys: list[str], hint: str = "") -> None:
        await uploads.files.delete(*keys, hint=hint)

    book.register(SWEEP_FILES, sweep_files)
    book.register(LIST_STRAYS, list_strays)
    book.register(EXPIRE_UPLOADS, expire_uploads)
    book.register(DISCARD_UPLOAD, discard_upload)
    book.register(DELETE_FILES, delete_files)


def recurring() -> tuple[Recurring, ...]:
    """When the jobs of the store run by themselves.

    The sweep every five minutes, expired uploads every minute, the walk over all objects on Sundays.
    """
    return (
        Recurring(SWEEP_FILES, cron("*/5 * * * *", "UTC")),
        Recurring(EXPIRE_UPLOADS, cron("* * * * *", "UTC")),
        Recurring(LIST_STRAYS, cron("30 3 * * 0", "UTC")),
    )
