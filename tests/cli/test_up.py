import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .command import environment, keystead

START_SECONDS = 180
# Of an installation to which nothing happens, a second: 125 to 180 were counted. Looks for what is due, signs of life
# and reports come each second; what waits on a list does so for seconds. With waits of one second it were 420 to 500.
MOST_IDLE_COMMANDS = 250
LANES = 9  # three of each channel, and each is waited on


class Up:
    """A running ``keystead up``, its output read line by line."""

    def __init__(self, process: subprocess.Popen[str], banner: str) -> None:
        self.process = process
        self.banner = banner
        self.url = re.search(r"http://[\d.]+:\d+", banner)[0]

    def get(self, path: str) -> tuple[int, bytes]:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.status, answer.read()

    def stop(self, number: int) -> tuple[int, str, str]:
        os.kill(self.process.pid, number)
        out, err = self.process.communicate(timeout=90)
        return self.process.returncode, out, err


@contextmanager
def running(directory: Path, *arguments: str) -> Iterator[Up]:
    process = subprocess.Popen(
        [sys.executable, "-m", "keystead.cli", "up", "--port", "0", "--no-dashboard", *arguments],
        cwd=directory, env=environment(PYTHONUNBUFFERED="1"), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    try:
        banner = ""
        deadline = time.monotonic() + START_SECONDS
        while "Ctrl-C" not in banner:
            line = process.stdout.readline()
            assert line and time.monotonic() < deadline, banner + process.communicate()[1]
            banner += line
        yield Up(process, banner)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def server_pids(directory: Path) -> list[int]:
    """Processes whose command line names the directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(directory).encode() in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_serves_and_stops_cleanly(tmp_path, number):
    with running(tmp_path) as up:
        assert "Valkey in .keystead" in up.banner
        assert all(line == line.rstrip() for line in up.banner.splitlines())
        assert up.get("/health")[0] == 200
        code, _, err = up.stop(number)
    assert code == 0
    assert err.splitlines()[-1] == "Stopped."
    assert "Traceback" not in err
    assert not server_pids(tmp_path)


def test_commands_find_the_running_server_and_the_data_survives(tmp_path):
    with running(tmp_path) as up:
        document = json.loads(keystead("keys", "audit", "--format", "json", cwd=tmp_path).out)
        assert document["clean"]
        told = keystead("keys", "explain", "api_ip:203.0.113.7", cwd=tmp_path)
        assert told.code == 0
        link = keystead("login-link", cwd=tmp_path)
        assert link.code == 0
        assert link.out.startswith(f"{up.url}/login?ticket=")
        assert link.out.count("\n") == 1
        assert up.get(link.out.strip().removeprefix(up.url))[0] == 200
        up.stop(signal.SIGTERM)
    assert "no server runs" in keystead("keys", "audit", cwd=tmp_path).refused()
    assert "keystead up" in keystead("login-link", cwd=tmp_path).refused()
    with running(tmp_path) as up:
        assert up.get("/health")[0] == 200


def test_second_up_on_the_same_directory_is_refused(tmp_path):
    with running(tmp_path) as up:
        line = keystead("up", "--no-dashboard", cwd=tmp_path).refused()
        assert "already runs" in line and up.url in line and "`keystead login-link`" in line
        assert up.get("/health")[0] == 200, "the first one is not disturbed"


def test_port_that_is_taken_is_refused(tmp_path):
    with running(tmp_path) as up:
        port = up.url.rpartition(":")[2]
        line = keystead("up", "--data", "other", "--port", port, "--no-dashboard", cwd=tmp_path).refused()
    assert port in line and "--port" in line
    assert not server_pids(tmp_path / "other")


def test_server_of_your_own_is_used_and_left_in_peace(tmp_path, server):
    with running(tmp_path, "--url", server.tcp_url) as up:
        assert f"127.0.0.1:{server.port}" in up.banner
        assert "Valkey in" not in up.banner
        assert up.get("/health")[0] == 200
        deadline = time.monotonic() + START_SECONDS
        while told(server, "clients", "blocked_clients") < LANES:
            assert time.monotonic() < deadline, "nobody waits for messages"
            time.sleep(0.1)
        # What follows the start may take a while; a loop that never rests stays above it for good.
        rates = [commands_per_second(server)]
        while rates[-1] > MOST_IDLE_COMMANDS:
            assert time.monotonic() < deadline, f"nothing happens, and the server is asked all the same: {rates}"
            rates.append(commands_per_second(server))


def commands_per_second(server, seconds: float = 4.0) -> float:
    """What a server is asked to do, commands of scripts included."""
    began, before = time.monotonic(), told(server, "stats", "total_commands_processed")
    time.sleep(seconds)
    return (told(server, "stats", "total_commands_processed") - before) / (time.monotonic() - began)


def told(server, section: str, name: str) -> int:
    return int(re.search(rf"\b{name}:(\d+)", server.call("INFO", section).decode())[1])


def test_data_directory_that_cannot_be_written_is_refused(tmp_path):
    """As an unprivileged user: root may write everywhere."""
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    outcome = _as_nobody("up", "--data", str(closed / "data"), "--port", "0", "--no-dashboard", cwd="/")
    line = outcome.stderr
    assert outcome.returncode == 2, line
    assert line.startswith("keystead: ") and line.count("\n") == 1
    assert "cannot be written" in line and "closed/data" in line


def _as_nobody(*arguments: str, cwd: str) -> subprocess.CompletedProcess[str]:
    """Drop the rights after Python has started, so that the interpreter itself need not be readable by others."""
    drop = "import os\nif os.getuid() == 0:\n os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    code = "import keystead.app, keystead.engine, keystead.web.server, keystead.web.serving\n"
    code += "from keystead.cli import main\n"
    # Rooms open when they are used, which would be too late here.
    code += (
        "from importlib import import_module\nfrom pkgutil import walk_packages\n"
        "import keystead.switchboard\n"
        "for room in map(import_module, ('keystead.members', 'keystead.messaging', 'keystead.reminders',\n"
        "                                'keystead.stats', 'keystead.store')):\n"
        "    for part in walk_packages(room.__path__, room.__name__ + '.'):\n"
        "        'migrations' in part.name or part.name.endswith('__main__') or import_module(part.name)\n"
    )
    code += f"{drop}main({arguments!r})"
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment(HOME="/"), capture_output=True,
                          text=True, timeout=180, check=False)


def test_data_and_url_exclude_each_other(tmp_path):
    line = keystead("up", "--data", "x", "--url", "valkey://localhost", cwd=tmp_path).refused()
    assert "--data" in line and "--url" in line


def test_banner_has_the_link_in_one_piece(tmp_path):
    """With the dashboard, off a terminal: the link stands alone in its line and logs in once."""
    process = subprocess.Popen(
        [sys.executable, "-m", "keystead.cli", "up", "--port", "0"], cwd=tmp_path, text=True,
        env=environment(PYTHONUNBUFFERED="1", COLUMNS="60"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    try:
        links = []
        while not links:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            links = [line.strip()] if "/login?ticket=" in line else []
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?ticket=[\w.%-]+", links[0])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_token_opens_metrics_and_nothing_else(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        made = keystead("token", "prometheus", "--scope", "metrics", cwd=tmp_path)
        assert made.code == 0, made.err

        def asked(path: str) -> int:
            request = urllib.request.Request(up.url + path, headers={"Authorization": f"Bearer {made.out.strip()}"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        assert asked("/metrics") == 200
        assert asked("/api/1/keys") == 403


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("--scope", "everything"), "there is no scope 'everything'"), (("--scope", "keys", "--days", "0"), "above 0")],
)
def test_token_for_nothing_known_is_refused(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in keystead("token", "prometheus", *arguments, cwd=tmp_path).refused()
