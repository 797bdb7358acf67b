"""``keystead keys top``: which patterns grow."""

import json
from pathlib import Path

import pytest

from keystead.testing.server import LocalServer

from .command import keystead


@pytest.fixture
def filled(server: LocalServer) -> LocalServer:
    for number in range(20):
        server.call("SET", f"user:{number}", "x" * 100)
    return server


def test_one_look_shows_what_is_large(filled: LocalServer) -> None:
    done = keystead("keys", "top", filled.tcp_url, "--wait", "0", "--by", "memory")
    assert done.code == 0, done.err
    assert "user:{user_id}" in done.out and "1 pattern, 20 keys" in done.out


def test_growth_since_a_snapshot(filled: LocalServer, tmp_path: Path) -> None:
    kept = tmp_path / "before.json"
    first = keystead("keys", "top", filled.tcp_url, "--wait", "0", "--save", kept)
    assert first.code == 0 and "kept in" in first.err
    for number in range(20, 50):
        filled.call("SET", f"user:{number}", "x" * 100)
    done = keystead("keys", "top", filled.tcp_url, "--since", kept, "--format", "json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["patterns"]
    assert (row["pattern"], row["keys_before"], row["keys"]) == ("user:{user_id}", 20, 50)
    assert row["keys_per_minute"] > 0 and row["bytes_per_minute"] > 0


def test_inventory_names_the_patterns(filled: LocalServer, tmp_path: Path) -> None:
    written = tmp_path / "redis-keys.md"
    written.write_text("| Key | Type | TTL | Purpose |\n|---|---|---|---|\n| `user:{sub}` | string | none | people |\n")
    done = keystead("keys", "top", filled.tcp_url, "--wait", "0.2", "--inventory", written)
    assert done.code == 0, done.err
    assert "user:{sub}" in done.out


def test_refusals_are_one_line(filled: LocalServer, tmp_path: Path) -> None:
    assert "cannot be read" in keystead("keys", "top", filled.tcp_url, "--since", tmp_path / "none.json").refused()
    assert "cannot be reached" in keystead("keys", "top", "redis://127.0.0.1:1").refused()


def test_inventory_of_the_folder_names_the_patterns_but_those_of_a_snapshot(
    filled: LocalServer, tmp_path: Path
) -> None:
    learned = keystead("keys", "top", filled.tcp_url, "--wait", "0", "--save", tmp_path / "old.json", cwd=tmp_path)
    assert "user:{user_id}" in learned.out
    (tmp_path / "keystead.toml").write_text('[[key]]\npattern = "user:{sub}"\n')
    assert "user:{sub}" in keystead("keys", "top", filled.tcp_url, "--wait", "0", cwd=tmp_path).out
    done = keystead("keys", "top", filled.tcp_url, "--since", "old.json", "--format", "json", cwd=tmp_path)
    (row,) = json.loads(done.out)["patterns"]
    assert (row["keys_before"], row["keys"]) == (20, 20)


def test_what_could_not_be_asked_is_told(filled: LocalServer) -> None:
    filled.call("ACL", "SETUSER", "nosy", "on", "nopass", "~*", "+@all", "-memory")
    try:
        done = keystead("keys", "top", filled.tcp_url.replace("://", "://nosy:x@"), "--wait", "0")
    finally:
        filled.call("ACL", "DELUSER", "nosy")
    assert done.code == 0 and "memory is unknown" in done.err
