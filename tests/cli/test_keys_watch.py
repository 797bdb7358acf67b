"""``keystead keys watch``: what changes, as lines or JSON."""

import json
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from keystead.testing.server import LocalServer

from .command import environment, keystead


@pytest.fixture
def busy(server: LocalServer):
    """A server on which a key is written again and again."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            server.call("SET", f"user:{number}", "x")
            time.sleep(0.01)

    writer = threading.Thread(target=write)
    server.call("CONFIG", "SET", "notify-keyspace-events", "KA")
    writer.start()
    yield server
    stop.set()
    writer.join()
    server.call("CONFIG", "SET", "notify-keyspace-events", "")


def test_lines_off_a_terminal(busy: LocalServer) -> None:
    done = keystead("keys", "watch", busy.tcp_url, "--every", "0.5", "--for", "3")
    assert done.code == 0, done.err
    assert "user:{user_id} written=" in done.out and "gone=0" in done.out


def test_json_is_one_line_for_each_turn(busy: LocalServer) -> None:
    done = keystead("keys", "watch", busy.tcp_url, "--every", "0.5", "--for", "3", "--format", "json")
    frames = [json.loads(line) for line in done.out.splitlines()]
    assert frames and all(frame["by"] == "events" for frame in frames)
    assert any(row["pattern"] == "user:{user_id}" and row["written"] for frame in frames for row in frame["patterns"])


def test_without_events_it_says_how_it_watches(server: LocalServer) -> None:
    done = keystead("keys", "watch", server.tcp_url, "--every", "0.2", "--for", "0.5")
    assert done.code == 0 and "keyspace events are off" in done.err


def test_table_refreshes_on_a_terminal(busy: LocalServer) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "keystead.cli", "keys", "watch", busy.tcp_url, "--every", "0.5", "--for", "3"],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(TERM="xterm", COLUMNS="120"))
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other end is gone
        pass
    os.close(ours)
    assert process.wait(60) == 0
    assert b"user:{user_id}" in shown and b"keyspace events" in shown


def test_server_out_of_reach_is_one_line() -> None:
    assert "cannot be reached" in keystead("keys", "watch", "redis://127.0.0.1:1", "--for", "1").refused()


def test_nothing_that_changed_is_said_too(server: LocalServer) -> None:
    server.call("SET", "user:1", "x")
    done = keystead("keys", "watch", server.tcp_url, "--every", "0.3", "--for", "0.6")
    assert (done.code, done.out) == (0, "") and "nothing changed" in done.err


def test_inventory_of_the_folder_names_the_patterns(busy: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "keystead.toml").write_text('[[key]]\npattern = "user:{sub}"\n')
    done = keystead("keys", "watch", busy.tcp_url, "--every", "0.5", "--for", "3", cwd=tmp_path)
    assert "user:{sub} written=" in done.out
