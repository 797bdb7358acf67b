"""URLs of databases: what they mean, and what is said of those that mean nothing."""

from pathlib import Path

import pytest

from keystead.errors import Invalid
from keystead.store.address import parse_address


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///data/keystead.db", "data/keystead.db"),
        ("sqlite:////srv/keystead.db", "/srv/keystead.db"),
        ("sqlite+aiosqlite:///a b.db", "a b.db"),
    ],
)
def test_a_sqlite_file_is_named_after_three_slashes(url: str, path: str) -> None:
    address = parse_address(url)
    assert (address.dialect, address.path, address.shown) == ("sqlite", Path(path), f"SQLite file {path}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:s3cret@db.example:5433/shop", "PostgreSQL database shop at db.example:5433"),
        ("postgres://ada:s3cret@db.example/shop?sslmode=require", "PostgreSQL database shop at db.example"),
        ("postgresql+asyncpg:///shop", "PostgreSQL database shop at the default socket"),
        ("postgresql://ada:@/shop?host=/run/pg", "PostgreSQL database shop at /run/pg"),
        ("postgresql://ada:s3cret@/shop?host=a:1&host=b:2", "PostgreSQL database shop at a:1, b:2"),
    ],
)
def test_a_postgresql_database_is_shown_without_its_password(url: str, shown: str) -> None:
    address = parse_address(url)
    assert (address.dialect, address.shown) == ("postgresql", shown)
    assert address.dsn.startswith("postgresql://")
    assert "s3cret" not in address.shown


def test_a_password_with_signs_reaches_the_driver_unchanged() -> None:
    assert parse_address("postgresql://ada:p%40ss%2Fw@h/d").dsn == "postgresql://ada:p%40ss%2Fw@h/d"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "sqlite:///FILE"),
        ("keystead.db", "sqlite:///FILE"),
        ("mysql://ada:s3cret@h/d", "SQLite or PostgreSQL"),
        ("sqlite://keystead.db", "three slashes"),
        ("sqlite://", "outlives"),
        ("sqlite:///:memory:", "outlives"),
        ("sqlite:///a.db?mode=ro", "nothing may follow"),
        ("sqlite:///~nobody-of-that-name/a.db", "home directory"),
        ("sqlite:///a\0b.db", "zero byte"),
        ("postgresql://ada:s3cret@h", "names no database"),
        ("postgresql://ada:s3cret@h:port/d", "cannot be read"),
    ],
)
def test_a_url_that_cannot_be_used_says_how_to_write_it(url: str, says: str) -> None:
    with pytest.raises(Invalid, match=says) as refused:
        parse_address(url)
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)
