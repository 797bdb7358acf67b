"""``keystead keys diff``: two servers, two snapshots, or one of each."""

import json
from pathlib import Path

import pytest

from keystead.testing.server import LocalServer
from tests.survey.old_redis import OldRedis

from .command import keystead


@pytest.fixture(scope="module")
def other_server():
    server = OldRedis()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def other(other_server: OldRedis) -> OldRedis:
    other_server.call("FLUSHALL")
    return other_server


def fill(server: LocalServer | OldRedis, keys: int) -> None:
    for number in range(keys):
        server.call("SET", f"user:{number}", "x")


def test_same_patterns_are_no_difference_whatever_their_numbers(server: LocalServer, other: OldRedis) -> None:
    fill(server, 20)
    fill(other, 30)
    done = keystead("keys", "diff", server.tcp_url, other.url)
    assert done.code == 0, done.err
    assert "no difference, 1 pattern on both sides" in done.out
    shown = keystead("keys", "diff", server.tcp_url, other.url, "--all")
    assert "user:{user_id}" in shown.out and "20" in shown.out and "30" in shown.out


def test_differences_are_named_and_leave_with_one(server: LocalServer, other: OldRedis) -> None:
    fill(server, 10)
    fill(other, 10)
    server.call("SET", "config", "x")
    other.call("HSET", "config", "a", "b")
    other.call("SET", "only:there", "x")
    done = keystead("keys", "diff", server.tcp_url, other.url, "--format", "json")
    assert done.code == 1, done.err
    told = json.loads(done.out)
    assert not told["same"]
    assert {row["pattern"]: row["says"] for row in told["patterns"]} == {
        "config": ["type string here, hash there"], "only:there": ["only on the second side"]}


def test_server_is_compared_with_its_snapshot(server: LocalServer, tmp_path: Path) -> None:
    fill(server, 10)
    kept = tmp_path / "before.json"
    assert keystead("keys", "top", server.tcp_url, "--wait", "0", "--save", kept).code == 0
    for sides in ((kept, server.tcp_url), (server.tcp_url, kept), (kept, kept)):
        assert keystead("keys", "diff", *sides).code == 0
    server.call("SET", "surprise", "x")
    done = keystead("keys", "diff", kept, server.tcp_url)
    assert done.code == 1 and "surprise" in done.out and "only on the second side" in done.out


def test_refusals_are_one_line(server: LocalServer) -> None:
    assert "cannot be read" in keystead("keys", "diff", "none.json", server.tcp_url).refused()
    assert "cannot be reached" in keystead("keys", "diff", server.tcp_url, "redis://127.0.0.1:1").refused()


def test_patterns_bear_the_names_of_the_inventory(server: LocalServer, other: OldRedis, tmp_path: Path) -> None:
    fill(server, 10)
    fill(other, 10)
    server.call("SET", "cart:7", "x")
    described = tmp_path / "redis-keys.md"
    described.write_text("| Key | Type |\n|---|---|\n| `user:<who>` | String |\n| `cart:<shopper>` | String |\n"
                         "| `never:<seen>` | String |\n")
    done = keystead("keys", "diff", server.tcp_url, other.url, "--inventory", described, "--all", "--format", "json")
    assert done.code == 1, done.err
    assert {row["pattern"]: row["says"] for row in json.loads(done.out)["patterns"]} == {
        "user:{who}": [], "cart:{shopper}": ["only on the first side"]}
