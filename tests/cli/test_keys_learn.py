"""``keystead keys learn`` on a server that nobody declared anything for."""

import json
from pathlib import Path

import pytest

from keystead.inventory import read_inventory
from keystead.testing.server import LocalServer

from .command import keystead


@pytest.fixture
def filled(server: LocalServer) -> LocalServer:
    for number in range(20):
        server.call("HSET", f"user:{number}", "name", "Ann")
        server.call("SET", f"visits:{20_400 + number}", number)
    return server


def test_table_shows_patterns(filled: LocalServer) -> None:
    done = keystead("keys", "learn", filled.tcp_url)
    assert done.code == 0, done.err
    assert "user:{user_id}" in done.out and "visits:{unix_date}" in done.out
    assert "2 patterns, 40 keys" in done.out
    assert "guesses" in done.err


@pytest.mark.parametrize("ending", ["toml", "yaml", "json"])
def test_file_can_be_read_back(filled: LocalServer, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"draft.{ending}"
    done = keystead("keys", "learn", filled.tcp_url, "--out", file)
    assert (done.code, done.out) == (0, ""), done.err
    draft = read_inventory(file)
    assert {entry.pattern for entry in draft.entries} == {"user:{user_id}", "visits:{unix_date}"}
    assert draft.entries[0].observed is not None and draft.entries[0].observed.keys == 20
    audited = keystead("keys", "audit", filled.tcp_url, "--inventory", file)
    assert audited.code == 0, audited.out + audited.err


def test_json_is_for_programs(filled: LocalServer) -> None:
    done = keystead("keys", "learn", filled.tcp_url, "--format", "json", "--match", "user:*")
    assert done.code == 0
    assert [each["pattern"] for each in json.loads(done.out)["keys"]] == ["user:{user_id}"]


def test_refusals_are_one_line(filled: LocalServer, tmp_path: Path) -> None:
    assert "no known ending" in keystead("keys", "learn", filled.tcp_url, "--out", "draft.doc").refused()
    nowhere = tmp_path / "no" / "a.toml"
    assert "cannot be written" in keystead("keys", "learn", filled.tcp_url, "--out", nowhere).refused()
    assert "cannot be reached" in keystead("keys", "learn", "redis://127.0.0.1:1").refused()
