"""Store: the SQL database and its migrations, what leaves with a transaction, and object files."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.store.database import Database
    from keystead.store.files import ObjectFiles, open_files
    from keystead.store.files_kept import ContentMismatch, FileLost, Files, Promised, SavedFile
    from keystead.store.outbox import OutboxCounts, OutboxFailure, SqlOutbox
    from keystead.store.query import Query
    from keystead.store.sweep import Sweep, SweepReport
    from keystead.store.tables import METADATA
    from keystead.store.uploads import PartMismatch, PartMissing, PartTaken, UploadClosed, Uploads
    from keystead.store.uploads_plan import StartedUpload, UploadPurpose
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "ContentMismatch",
    "Database",
    "FileLost",
    "Files",
    "METADATA",
    "ObjectFiles",
    "OutboxCounts",
    "OutboxFailure",
    "PartMismatch",
    "PartMissing",
    "PartTaken",
    "Promised",
    "Query",
    "SavedFile",
    "SqlOutbox",
    "StartedUpload",
    "Sweep",
    "SweepReport",
    "UploadClosed",
    "UploadPurpose",
    "Uploads",
    "open_files",
]
