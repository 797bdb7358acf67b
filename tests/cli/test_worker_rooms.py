"""``keystead worker`` without modules. The whole of it beside ``keystead api``: tests/scenarios/test_parts_apart.py."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .command import environment, keystead

PROGRAM = """
from pathlib import Path
from keystead.jobs import job

@job(name="slow")
async def slow():
    import asyncio
    Path("begun").touch()
    await asyncio.sleep(600)
"""


@pytest.mark.parametrize("option", ["--at-most-once", "--no-recurring"])
def test_what_is_only_for_jobs_of_modules_is_refused(tmp_path: Path, option: str) -> None:
    assert "name a module" in keystead("worker", option, cwd=tmp_path).refused()


def test_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "127.0.0.1:1" in keystead("worker", "--url", "valkey://127.0.0.1:1", cwd=tmp_path).refused()


def test_program_without_its_module_is_one_line(tmp_path: Path, server) -> None:
    line = keystead("worker", "--url", server.url, cwd=tmp_path, KEYSTEAD_PROGRAM_MODULES="nowhere").refused()
    assert "nowhere" in line


def test_second_signal_gives_back_at_once(tmp_path: Path, server) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    server.call("RPUSH", "jobs:hot", '{"name": "slow", "kwargs": {}, "queued_at": 1}')
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "keystead.cli", "worker", "--url", server.url, "--grace-seconds", "500"],
            cwd=tmp_path, env=environment(KEYSTEAD_PROGRAM_MODULES="shop"), stdout=said, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        deadline = time.monotonic() + 180
        while not (tmp_path / "begun").exists():
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "said").read_text()
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGTERM)
        time.sleep(2)
        assert process.poll() is None, "the job may end by itself"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(90) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    said = (tmp_path / "said").read_text()
    assert "Traceback" not in said and said.rstrip().endswith("worker stopped")
    assert server.call("LLEN", "jobs:hot") == 1 or server.call("ZCARD", "jobs:delayed") == 1
