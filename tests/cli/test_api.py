"""``keystead api``: HTTP without work; beside ``keystead worker`` it is in tests/scenarios/test_parts_apart.py."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from .command import environment, keystead


def test_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    line = keystead("api", "--url", "valkey://127.0.0.1:1", "--port", "0", cwd=tmp_path).refused()
    assert "127.0.0.1:1" in line


def test_embedded_server_is_attached_to_and_never_started(tmp_path: Path) -> None:
    assert "keystead up" in keystead("api", "--port", "0", cwd=tmp_path).refused()


def test_several_processes_serve_no_dashboard(tmp_path: Path) -> None:
    line = keystead("api", "--processes", "2", "--dashboard", cwd=tmp_path).refused()
    assert "one process" in line


def test_secret_that_can_be_guessed_is_refused_and_not_shown(tmp_path: Path, server) -> None:
    short = {"KEYSTEAD_INSTALLATION_SECRET": "abc"}
    line = keystead("api", "--url", server.url, "--port", "0", cwd=tmp_path, **short).refused()
    assert "installation.secret" in line and "32" in line and "abc" not in line


@pytest.mark.parametrize("processes", [1, 2])
def test_processes_answer_on_one_port_until_told_to_stop(tmp_path: Path, server, processes: int) -> None:
    said = tmp_path / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "keystead.cli", "api", "--port", "0", "--url", server.url, "--processes",
             str(processes)], cwd=tmp_path, env=environment(PYTHONUNBUFFERED="1"), stdout=file,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )
    try:
        assert _answers(process, said)
        taken = re.search(r"http://127\.0\.0\.1:(\d+)", said.read_text())[1]
        line = keystead("api", "--port", taken, "--url", server.url, "--processes", "2", cwd=tmp_path).refused()
        assert f"port {taken} is taken" in line, "sharing is for processes of one command"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(90) == 0, said.read_text()
        assert "Traceback" not in said.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _answers(process: subprocess.Popen[bytes], said: Path) -> bool:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert process.poll() is None, said.read_text()
        found = re.search(r"http://127\.0\.0\.1:\d+", said.read_text())
        try:
            if found is not None:
                with urllib.request.urlopen(found[0] + "/health", timeout=60) as answer:
                    return answer.status == 200
        except OSError:
            pass
        time.sleep(0.1)
    return False
