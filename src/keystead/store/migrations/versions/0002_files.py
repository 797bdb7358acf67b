"""Saved files, purged keys, and uploads in parts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "s3_files",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("file_size", sa.BigInteger, nullable=False),
        sa.Column("content_type", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "s3_file_purges",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("purged_at", sa.Double, nullable=False),
    )
    op.create_index("s3_file_purges_purged_at", "s3_file_purges", ["purged_at"])
    op.create_table(
        "s3_file_uploads",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("file_size", sa.BigInteger, nullable=False),
        sa.Column("success_job_name", sa.Text, nullable=False),
        sa.Column("success_job_kwargs", sa.Text, nullable=False),
        sa.Column("failure_job_name", sa.Text, nullable=False),
        sa.Column("failure_job_kwargs", sa.Text, nullable=False),
        sa.Column("job_progress_uid", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("completed_at", sa.Double),
        sa.Column("failed_at", sa.Double),
    )
    still_open = sa.text("completed_at IS NULL AND failed_at IS NULL")
    op.create_index(
        "s3_file_uploads_open", "s3_file_uploads", ["expires_at"], postgresql_where=still_open, sqlite_where=still_open
    )
    op.create_table(
        "s3_file_upload_parts",
        sa.Column("id", number, sa.Identity(), primary_key=True),
        sa.Column("upload_id", sa.BigInteger, sa.ForeignKey("s3_file_uploads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("part_number", sa.Integer, nullable=False),
        sa.Column("start_byte", sa.BigInteger, nullable=False),
        sa.Column("end_byte", sa.BigInteger, nullable=False),
        sa.Column("s3_file_id", sa.BigInteger, sa.ForeignKey("s3_files.id", ondelete="RESTRICT")),
        sa.UniqueConstraint("upload_id", "part_number", name="s3_file_upload_parts_of_upload"),
    )
    op.create_index("s3_file_upload_parts_file", "s3_file_upload_parts", ["s3_file_id"])
