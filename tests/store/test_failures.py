"""What errors of the drivers mean: one line, with what to do, and without secrets."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from keystead.errors import Invalid, Unavailable
from keystead.store import Database
from keystead.store.address import parse_address
from keystead.store.failures import meaning

from ..databases import PostgreSQL

POSTGRESQL = parse_address("postgresql://ada:s3cret@db.example/shop")
SQLITE = parse_address("sqlite:///shop.db")


class Answer(Exception):
    """An error reply of PostgreSQL."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("ada s3cret")
        self.sqlstate = sqlstate


@pytest.mark.parametrize("code", ["08006", "40001", "40P01", "53300", "53100", "55P03", "57P01", "57P03", "57014"])
def test_what_passes_is_unavailable(code: str) -> None:
    found = meaning(Answer(code), POSTGRESQL)
    assert isinstance(found, Unavailable)
    assert "shop at db.example" in str(found) and "s3cret" not in str(found)


@pytest.mark.parametrize(("code", "says"), [("28P01", "password"), ("28000", "pg_hba"), ("3D000", "CREATE DATABASE")])
def test_a_wrong_setup_says_what_to_do(code: str, says: str) -> None:
    found = meaning(Answer(code), POSTGRESQL, lost=True)
    assert isinstance(found, Invalid)
    assert says in str(found) and "s3cret" not in str(found)


@pytest.mark.parametrize("code", ["23505", "42P01", "42704", "22023"])
def test_an_error_of_the_statement_is_left_alone(code: str) -> None:
    assert meaning(Answer(code), POSTGRESQL) is None


def test_a_connection_that_is_gone_is_unavailable_whatever_else_is_said() -> None:
    assert isinstance(meaning(ValueError("closed"), POSTGRESQL, lost=True), Unavailable)
    assert isinstance(meaning(ValueError("closed"), SQLITE, lost=True), Unavailable)
    assert meaning(ValueError("no"), SQLITE) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, Unavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Unavailable),
        (sqlite3.SQLITE_FULL, Unavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, Unavailable),
        (sqlite3.SQLITE_NOTADB, Invalid),
        (sqlite3.SQLITE_CORRUPT, Invalid),
        (sqlite3.SQLITE_READONLY, Invalid),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, type(None)),
    ],
)
def test_codes_of_sqlite(code: int, kind: type) -> None:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    assert isinstance(meaning(error, SQLITE), kind)


async def refusal(url: str, kind: type[Exception]) -> str:
    with pytest.raises(kind) as refused:
        async with Database.open(url):
            pass
    assert "s3cret" not in str(refused.value) and "\n" not in str(refused.value)
    return str(refused.value)


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    assert "is the server running" in await refusal("postgresql://ada:s3cret@127.0.0.1:1/shop", Unavailable)
    assert "is the server running" in await refusal(f"postgresql://ada:s3cret@/shop?host={tmp_path}", Unavailable)
    for place in ("127.0.0.1:99999/shop", "127.0.0.1:1/shop?sslmode=bogus", "a..b/shop"):
        assert "cannot be reached" in await refusal(f"postgresql://ada:s3cret@{place}", Invalid)
    assert "no-such-host.invalid" in await refusal("postgresql://ada:s3cret@no-such-host.invalid/shop", Unavailable)


async def test_a_real_server_refuses_a_missing_database_user_and_parameter(postgresql: PostgreSQL) -> None:
    assert "CREATE DATABASE" in await refusal(postgresql.url("nowhere"), Invalid)
    nobody = postgresql.url("postgres").replace("//postgres:@", "//nobody:s3cret@")
    assert "check the user" in await refusal(nobody, Invalid)
    assert "remove it from the URL" in await refusal(postgresql.url("postgres") + "&speed=9", Invalid)


async def test_a_wrong_password_is_refused_and_never_shown(postgresql: PostgreSQL) -> None:
    user = f"ada_{os.getpid()}"
    postgresql.with_password(user, "right")
    url = postgresql.url("postgres").replace("//postgres:@", f"//{user}:PASSWORD@")
    async with asyncio.timeout(60):  # the server reads its rules when it comes to it
        while True:
            try:
                async with Database.open(url.replace("PASSWORD", "s3cret")):
                    await asyncio.sleep(0.05)
            except Invalid as refused:
                assert "check the user and the password" in str(refused) and "s3cret" not in str(refused)
                break
    async with Database.open(url.replace("PASSWORD", "right")):
        pass


async def test_files_that_cannot_be_a_database_say_why(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ada, this is no database at all." * 100)
    assert "not a SQLite database" in await refusal(f"sqlite:///{tmp_path}/letter.txt", Invalid)
    assert "cannot be made" in await refusal(f"sqlite:///{tmp_path}", Invalid)
    assert "cannot be made" in await refusal(f"sqlite:///{tmp_path}/letter.txt/deeper/x.db", Invalid)
