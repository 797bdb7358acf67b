"""``keystead keys move``, as a user types it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from keystead.testing.server import LocalServer

from .command import keystead


@pytest.fixture
def other() -> Iterator[LocalServer]:
    server = LocalServer()
    server.start()
    yield server
    server.stop()


def test_keys_move_only_when_told(valkey_server: LocalServer, other: LocalServer, tmp_path: Path) -> None:
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    valkey_server.call("SET", "a", "1", "EX", "1000")
    valkey_server.call("HSET", "b", "f", "v")
    command = ("keys", "move", valkey_server.tcp_url, other.tcp_url)
    tried = keystead(*command, cwd=tmp_path)
    assert tried.code == 0 and "would be moved" in tried.out and "add --really" in tried.err, tried.err
    assert other.call("DBSIZE") == 0
    done = keystead(*command, "--really", "--state", "state.json", "--format", "json", cwd=tmp_path)
    told = json.loads(done.out)
    assert done.code == 0 and told["moved"] == told["checked"] == 2 and told["clean"], done.out
    assert 900 < other.call("TTL", "a") <= 1000 and valkey_server.call("DBSIZE") == 2
    other.call("SET", "a", "2")
    again = keystead(*command, "--really", cwd=tmp_path)
    assert again.code == 1 and "a: the target holds something else" in again.err


def test_own_rooms_change_their_layout(valkey_server: LocalServer, tmp_path: Path) -> None:
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    valkey_server.call("SET", "user:timezones:user-1", "Europe/Rome", "EX", "1000")
    done = keystead("keys", "move", valkey_server.tcp_url, "--to-layout", "tagged", "--really", "--delete-source",
                    cwd=tmp_path)
    assert done.code == 0, done.err
    (key,) = valkey_server.call("KEYS", "*")
    assert key.endswith(b"}user:timezones:user-1") and 900 < valkey_server.call("TTL", key) <= 1000


def test_aim_is_needed(tmp_path: Path) -> None:
    assert "say where to" in keystead("keys", "move", "valkey://127.0.0.1:1", cwd=tmp_path).refused()
    refused = keystead("keys", "move", "valkey://127.0.0.1:1", "--to-layout", "round", cwd=tmp_path).refused()
    assert "there is no layout round" in refused
