"""Tables of saved files and of uploads in parts."""

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Identity, Index, Integer, Table, Text, UniqueConstraint

from keystead.store.tables import METADATA

_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

# A row means: the object is there, whole. Other rooms refer to ``id`` with ON DELETE RESTRICT.
FILES = Table(
    "s3_files",
    METADATA,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("key", Text, nullable=False, unique=True),
    Column("file_size", BigInteger, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

# Keys that no row may have any more, because their object was purged or is about to be.
PURGES = Table(
    "s3_file_purges",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("purged_at", Double, nullable=False),
)
Index("s3_file_purges_purged_at", PURGES.c.purged_at)

UPLOADS = Table(
    "s3_file_uploads",
    METADATA,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("purpose", Text, nullable=False),
    Column("file_size", BigInteger, nullable=False),
    Column("success_job_name", Text, nullable=False),
    Column("success_job_kwargs", Text, nullable=False),
    Column("failure_job_name", Text, nullable=False),
    Column("failure_job_kwargs", Text, nullable=False),
    Column("job_progress_uid", Text),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("completed_at", Double),
    Column("failed_at", Double),
)
_OPEN = UPLOADS.c.completed_at.is_(None) & UPLOADS.c.failed_at.is_(None)
Index("s3_file_uploads_open", UPLOADS.c.expires_at, postgresql_where=_OPEN, sqlite_where=_OPEN)

# Bytes from start_byte to end_byte, both included. The file is null until the part has come.
PARTS = Table(
    "s3_file_upload_parts",
    METADATA,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("upload_id", BigInteger, ForeignKey("s3_file_uploads.id", ondelete="CASCADE"), nullable=False),
    Column("part_number", Integer, nullable=False),
    Column("start_byte", BigInteger, nullable=False),
    Column("end_byte", BigInteger, nullable=False),
    Column("s3_file_id", BigInteger, ForeignKey("s3_files.id", ondelete="RESTRICT")),
    UniqueConstraint("upload_id", "part_number", name="s3_file_upload_parts_of_upload"),
)
Index("s3_file_upload_parts_file", PARTS.c.s3_file_id)
