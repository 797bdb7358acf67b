"""The rows of the operations room: keys of programs."""

from sqlalchemy import Column, Double, Table, Text

from keystead.store import METADATA

# secret_sha256: in hexadecimal; the secret itself is kept nowhere. scopes: with spaces between them.
ADMIN_KEYS = Table(
    "admin_keys",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("secret_sha256", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("last_used_at", Double),
)
