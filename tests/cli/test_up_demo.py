"""The town beside ``keystead up --demo``."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keystead.app import App
from keystead.cli.entry import run
from keystead.settings import Settings

from .command import environment, keystead
from .test_up import server_pids


def test_speed_and_seed_are_for_the_town(tmp_path: Path) -> None:
    assert "add --demo" in keystead("up", "--speed", "60", cwd=tmp_path).refused()
    assert "leave out --url" in keystead("up", "--demo", "--url", "valkey://localhost", cwd=tmp_path).refused()


def test_time_of_a_real_installation_stays_real(tmp_path: Path) -> None:
    hurried = keystead("--set", "clock.speed=60", "up", "--port", "0", cwd=tmp_path)
    assert "add --demo" in hurried.refused() and not (tmp_path / ".keystead").exists()
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "keystead.json").write_text('{"version": "0.0.1"}')
    assert "the real one" in keystead("up", "--demo", "--data", "real", cwd=tmp_path).refused()
    assert [each.name for each in (tmp_path / "real").iterdir()] == ["keystead.json"]


def test_town_does_not_take_what_somebody_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Settings] = []

    async def begin(app: App, settings: Settings, *others: object, **more: object) -> None:
        begun.append(settings)

    monkeypatch.setattr("keystead.cli.up.serve_with_banner", begin)
    monkeypatch.setattr("keystead.telemetry.configure_logging", lambda *given, **more: None)
    monkeypatch.chdir(tmp_path)
    assert run(["up", "--demo"]) == 0
    (tmp_path / "keystead.toml").write_text('[program]\nmodules = "json"\n[reminders]\nyoungest_seconds = 9\n')
    monkeypatch.setenv("KEYSTEAD_CLOCK_SPEED", "60")
    assert run(["--set", "messaging.trace_seconds=77", "up", "--demo"]) == 0
    assert run(["up", "--demo", "--speed", "30"]) == 0

    def told(settings: Settings) -> tuple[object, ...]:
        names = "clock.speed", "messaging.trace_seconds", "reminders.youngest_seconds", "program.modules"
        return tuple(map(settings.value, names))

    assert [told(settings) for settings in begun] == [
        (144.0, 14_400, 0, "keystead.demo.program"), (60.0, 77, 9, "json,keystead.demo.program"),
        (30.0, 14_400, 9, "json,keystead.demo.program"),
    ]


def test_town_comes_to_life_and_ends_with_everything_else(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "keystead.cli", "up", "--demo", "--port", "0", "--no-dashboard", "--seed", "7"],
            cwd=tmp_path, env=environment(PYTHONUNBUFFERED="1"), stdout=file, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        deadline = time.monotonic() + 240
        while "town:" not in said.read_text():
            assert process.poll() is None and time.monotonic() < deadline, said.read_text()
            time.sleep(0.2)
        children = _children(process.pid)
        second = keystead("up", "--demo", cwd=tmp_path).refused()
        assert "`keystead login-link --data .keystead-demo`" in second, "the words can be typed as they are"
        assert children, "the town, and the server, are processes of their own"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(90) == 0, said.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert "Traceback" not in said.read_text()
    assert "SNS asks" not in said.read_text() and "not reached" not in said.read_text()
    assert (tmp_path / ".keystead-demo").is_dir() and not (tmp_path / ".keystead").exists()
    assert not [pid for pid in children if Path(f"/proc/{pid}/cmdline").exists()], "nothing is left behind"
    assert not server_pids(tmp_path)


def test_town_ends_with_an_installation_that_is_killed(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "keystead.cli", "up", "--demo", "--port", "0", "--no-dashboard"], cwd=tmp_path,
            env=environment(PYTHONUNBUFFERED="1"), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )
    try:
        deadline = time.monotonic() + 240
        while "town:" not in said.read_text():
            assert process.poll() is None and time.monotonic() < deadline, said.read_text()
            time.sleep(0.2)
        children = _children(process.pid)
    finally:
        process.kill()
        process.wait()
    while left := [pid for pid in children if _lives(pid)]:
        assert time.monotonic() < deadline, f"{left} were left behind\n{said.read_text()}"
        time.sleep(0.2)


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
