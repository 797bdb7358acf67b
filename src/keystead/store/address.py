"""Where the database is: what a URL says, and how it is spoken of without its password."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from keystead.errors import Invalid

Dialect = Literal["sqlite", "postgresql"]

FORMS = "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_POSTGRESQL = {"postgresql", "postgres", "postgresql+asyncpg"}
_SQLITE = {"sqlite", "sqlite+aiosqlite"}


@dataclass(frozen=True, slots=True)
class Address:
    """A database by URL. ``shown`` names it in messages and never holds a password; ``dsn`` may."""

    dialect: Dialect
    shown: str
    path: Path
    dsn: str


def parse_address(url: str) -> Address:
    """Read a URL; one that cannot be used is refused with how to write it. The refusal never shows a password."""
    try:
        parsed = make_url(url.strip())
    except (ArgumentError, ValueError):  # the library's message may quote a part of the password
        raise Invalid(f"the URL of the database cannot be read; {FORMS}, with %40 for an @ in a password") from None
    if parsed.drivername in _SQLITE:
        return _sqlite(parsed)
    if parsed.drivername in _POSTGRESQL:
        return _postgresql(parsed)
    raise Invalid(f"{parsed.drivername}: Keystead keeps its tables in SQLite or PostgreSQL; {FORMS}")


def _sqlite(url: URL) -> Address:
    if url.host:
        raise Invalid(
            f"sqlite://{url.host}: the name of a SQLite file comes after three slashes, "
            "as in sqlite:///data/keystead.db, or sqlite:////srv/keystead.db from the root"
        )
    if not url.database or url.database.startswith((":memory:", "file:")):
        raise Invalid("a SQLite database needs a file that outlives the process: sqlite:///data/keystead.db")
    if url.query:
        raise Invalid(f"sqlite:///{url.database}: nothing may follow the name of the file, got ?{'&'.join(url.query)}")
    if "\0" in url.database:
        raise Invalid("no file has a name with a zero byte; write sqlite:///data/keystead.db")
    try:
        path = Path(url.database).expanduser()
    except RuntimeError:
        raise Invalid(f"sqlite:///{url.database}: there is no such home directory; write the whole path") from None
    return Address("sqlite", f"SQLite file {path}", path, "")


def _postgresql(url: URL) -> Address:
    if not url.database:
        raise Invalid(f"the URL names no database; {FORMS}")
    host = url.host or url.query.get("host") or "the default socket"
    place = ", ".join(host) if isinstance(host, tuple) else host
    port = f":{url.port}" if url.port else ""
    # The driver reads the rest itself: sslmode, a socket's directory, several hosts, a password file.
    dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return Address("postgresql", f"PostgreSQL database {url.database} at {place}{port}", Path(), dsn)
