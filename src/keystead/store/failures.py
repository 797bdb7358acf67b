"""What an error of a driver means to a caller: out of reach, wrongly set up, or the statement's own fault."""

import re
import sqlite3

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from keystead.errors import Invalid, KeysteadError, Unavailable
from keystead.store.address import Address

_SQLITE_AWAY = {
    sqlite3.SQLITE_BUSY: "is locked by another program for too long",
    sqlite3.SQLITE_LOCKED: "is locked by another program for too long",
    sqlite3.SQLITE_IOERR: "cannot be read or written",
    sqlite3.SQLITE_FULL: "has no room left on its disk",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PROTOCOL: "is locked by another program for too long",
}
# After these SQLite may have undone the transaction by itself; what follows would be kept though the rest is lost.
_SQLITE_ENDS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT}
_SQLITE_WRONG = {
    sqlite3.SQLITE_NOTADB: "is not a SQLite database; name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore a backup, or run the recovery of the sqlite3 program on a copy",
    sqlite3.SQLITE_READONLY: "takes no changes here: write in a block of database.transaction(); if this is one, "
    "give this user the right to write the file and its directory",
    sqlite3.SQLITE_PERM: "may not be opened; give this user the right to read and write it",
    sqlite3.SQLITE_AUTH: "may not be opened; give this user the right to read and write it",
}
# By the class of the code, its first two characters, then by the whole code, which wins.
_POSTGRESQL_AWAY = {
    "08": "lost the connection",
    "40": "undid the transaction for the sake of another one",
    "53": "has no resources left",
    "55": "is locked by another transaction for too long",
    "57": "ended the work",
    "58": "has trouble with its disk",
    "53100": "has no room left on its disk",
    "53300": "takes no more connections",
    "57014": "took too long",
    "57P03": "is starting or stopping",
}
_POSTGRESQL_WRONG = {
    "28": "refuses this user; check the user and the password in the URL, and pg_hba.conf",
    "3D": "does not exist; create it with CREATE DATABASE, or name another in the URL",
    "25006": "takes no changes here: write in a block of database.transaction(); if this is one, name the primary",
    "42704": "does not know a parameter that the URL gives; remove it from the URL",
    "22023": "does not take a parameter that the URL gives; mend it in the URL",
}

_ARGUMENT = re.compile(r"argument \$\d+")


def meaning(error: BaseException, address: Address, *, lost: bool = False) -> KeysteadError | None:
    """``Unavailable`` where trying again may help, ``Invalid`` where the setup is wrong, None for any other error.

    ``lost``: the connection is known to be gone. Says which database, never a password or a value of a row.
    """
    if isinstance(error, NoFreeConnection):
        return Unavailable(f"{address.shown} is busy: no connection became free in time")
    if isinstance(error, TimeoutError):
        return Unavailable(f"{address.shown} did not answer in time")
    if address.dialect == "sqlite":
        return _sqlite(error, address, lost)
    return _postgresql(error, address, lost)


def ends_transaction(error: BaseException) -> bool:
    """Whether the connection must not be used further, since nobody knows what has become of its transaction."""
    return isinstance(error, TimeoutError) or getattr(error, "sqlite_errorcode", -1) & 0xFF in _SQLITE_ENDS


def hide_values(error: BaseException, wrapped: SQLAlchemyError | None) -> None:
    """Take the values of rows out of what PostgreSQL said of a statement, in place, its causes included.

    They would reach a log with the error: the server quotes rows in its details, and values that do not fit.
    """
    code = getattr(error, "sqlstate", None) or ""
    said = ""
    if code[:2] == "22":
        argument = _ARGUMENT.search(str(error))
        said = f"a value does not fit{' as ' + argument[0] if argument else ''} ({code})"
    for each in (error, error.__cause__):
        if getattr(each, "detail", None):
            each.detail = None  # type: ignore[union-attr]
        if said and each is not None:
            each.args = (said, *each.args[1:])
    if said and wrapped is not None:
        wrapped.args = (f"({type(error).__name__}) {said}", *wrapped.args[1:])


def _sqlite(error: BaseException, address: Address, lost: bool) -> KeysteadError | None:
    code = getattr(error, "sqlite_errorcode", -1) & 0xFF
    if code in _SQLITE_WRONG:
        return Invalid(f"{address.shown} {_SQLITE_WRONG[code]}")
    if code in _SQLITE_AWAY:
        return Unavailable(f"{address.shown} {_SQLITE_AWAY[code]}")
    return Unavailable(f"{address.shown}: its connection was closed") if lost else None


def _postgresql(error: BaseException, address: Address, lost: bool) -> KeysteadError | None:
    code = getattr(error, "sqlstate", None) or ""
    if code[:2] in ("28", "3D") or code == "25006" or (lost and code in _POSTGRESQL_WRONG):
        return Invalid(f"{address.shown} {_POSTGRESQL_WRONG.get(code) or _POSTGRESQL_WRONG[code[:2]]}")
    if says := _POSTGRESQL_AWAY.get(code) or _POSTGRESQL_AWAY.get(code[:2]):
        return Unavailable(f"{address.shown} {says}")
    if type(error).__name__ == "InvalidCachedStatementError":  # a migration while we run; the driver forgets its plans
        return Unavailable(f"{address.shown} has had its tables changed meanwhile; the next try will know them")
    if type(error.__cause__).__name__ == "ClientConfigurationError":  # found by the driver before it connects
        return Invalid(f"{address.shown} cannot be reached: the URL has an option with a value that there is not")
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return Unavailable(f"{address.shown} is out of reach: {reason}; is the server running there?")
    return Unavailable(f"{address.shown} lost the connection") if lost else None
