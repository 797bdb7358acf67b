"""What an archive says of itself, and what is remembered of the last backup."""

from typing import Final

import msgspec

FORMAT: Final = 1
RDB: Final = "rdb"
DUMP: Final = "dump"


class Part(msgspec.Struct, frozen=True):
    """One member of the archive."""

    name: str
    bytes: int
    sha256: str


class ObjectFilesPart(msgspec.Struct, frozen=True):
    """The object files. ``sha256`` is over the names and checksums of all of them, in their order in the archive.

    ``kept_elsewhere``: they lie in a bucket, and are not in the archive.
    """

    count: int = 0
    bytes: int = 0
    sha256: str = ""
    kept_elsewhere: bool = False


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first member of an archive: enough to refuse one that cannot be used, before anything is read."""

    format: int = FORMAT
    keystead_version: str
    taken_at: float
    layout: str
    lanes: int = 1
    valkey_database: int = 0
    valkey_server: str = ""
    valkey_form: str = RDB
    one_moment: bool = True
    sql_dialect: str = "sqlite"
    migration: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The last member: everything that is in the archive. An archive without it is not whole.

    ``held_ms``: how long writes waited. ``valkey_keys``: in all databases of the servers, at the moment of the backup.
    """

    head: Head
    parts: tuple[Part, ...]
    files: ObjectFilesPart
    valkey_keys: int
    held_ms: float
    sql_rows: dict[str, int] = {}
    warnings: tuple[str, ...] = ()


class LastBackup(msgspec.Struct, frozen=True, kw_only=True):
    """The last backup that went well, and the last that did not; times are unix seconds, 0 for never."""

    taken_at: float = 0.0
    path: str = ""
    bytes: int = 0
    seconds: float = 0.0
    held_ms: float = 0.0
    one_moment: bool = True
    failed_at: float = 0.0
    failure: str = ""
