"""What an archive says of itself, and what is remembered of the last backup."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

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
    """The first member of an archive: enough to refuse one that cannot be used, before anything is read.

    ``installation``: the name of the one that it was taken of; none in archives of older versions.
    """

    format: Annotated[int, Meta(ge=1)] = FORMAT
    keystead_version: Annotated[str, Meta(max_length=64)]
    taken_at: Annotated[float, Meta(ge=0, lt=1e11)]
    layout: Annotated[str, Meta(pattern="^(plain|tagged)$")]
    lanes: Annotated[int, Meta(ge=1)] = 1
    valkey_database: Annotated[int, Meta(ge=0)] = 0
    valkey_server: Annotated[str, Meta(max_length=200)] = ""
    valkey_form: Annotated[str, Meta(pattern="^(rdb|dump)$")] = RDB
    one_moment: bool = True
    sql_dialect: Annotated[str, Meta(max_length=64)] = "sqlite"
    migration: Annotated[str, Meta(max_length=64)] = ""
    installation: Annotated[str, Meta(max_length=64)] = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The last member: everything that is in the archive. An archive without it is not whole.

    ``held_ms``: how long writes waited. ``valkey_keys``: in all databases of the servers, at the moment of the backup.
    """

    head: Head
    parts: tuple[Part, ...]
    files: ObjectFilesPart
    valkey_keys: Annotated[int, Meta(ge=0)]
    held_ms: float
    sql_rows: dict[str, int] = {}
    warnings: tuple[str, ...] = ()


class Restoring(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that has begun: of which archive, and when."""

    file: str
    begun_at: float


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
