import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keystead.testing.server import LocalServer, free_ports


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_data_survives_kill_and_restart(valkey_server: LocalServer) -> None:
    valkey_server.call("SET", "k", "v")
    port = valkey_server.port
    valkey_server.kill()
    valkey_server.ensure_running()
    assert valkey_server.call("GET", "k") == b"v"
    valkey_server.restart()
    assert valkey_server.call("GET", "k") == b"v"
    assert valkey_server.port == port


def test_further_options_win() -> None:
    server = LocalServer({"maxmemory": "50mb", "client-output-buffer-limit": ["normal 0 0 0", "pubsub 1mb 1mb 60"]})
    server.start()
    try:
        assert server.call("CONFIG", "GET", "maxmemory")[1] == b"52428800"
        assert b"pubsub 1048576 1048576 60" in server.call("CONFIG", "GET", "client-output-buffer-limit")[1]
    finally:
        server.stop()
    assert not server.process.directory.exists()


@pytest.mark.parametrize("end", ["killed", "forgot to stop it"])
def test_process_that_is_gone_leaves_neither_server_nor_directory(end: str) -> None:
    program = (
        "from keystead.testing.server import LocalServer\n"
        "s = LocalServer(); s.start(); print(s.process.pid, s.process.directory, flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        pid, directory = owner.stdout.readline().split()
        assert _is_alive(int(pid))
        if end == "killed":
            owner.send_signal(signal.SIGKILL)
        else:
            owner.stdin.write("\n")
    deadline = time.monotonic() + 30
    while (_is_alive(int(pid)) or Path(directory).exists()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(int(pid))
    assert not Path(directory).exists()


def test_free_ports_differ() -> None:
    assert len(set(free_ports(12))) == 12
