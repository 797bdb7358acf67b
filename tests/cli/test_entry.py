import contextlib
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keystead.cli import entry
from keystead.errors import Unavailable

from .command import environment, keystead
from .old_server import old_server


def test_version_is_quick_and_needs_nothing_heavy():
    best = min(_processor_seconds("--version") for _ in range(3))
    assert best < 1.5, "it takes a tenth of that"
    outcome = keystead("--version")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("keystead 0.")


def _processor_seconds(*arguments: str) -> float:
    """What a command costs, which does not depend on how busy the machine is with other things."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    keystead(*arguments)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def test_help_imports_neither_the_engine_nor_the_web_server():
    heavy = ("redis", "fastapi", "nicegui", "msgspec", "structlog")
    code = ("import sys; from keystead.cli import main\ntry:\n main(['--help'])\nexcept SystemExit: pass\n"
            f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stderr.strip() == "[]"
    assert "login-link" in done.stdout


def test_no_command_shows_the_help():
    outcome = keystead()
    assert outcome.code == 0
    assert "login-link" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["upp"], "upp"),
        (["keys", "audit", "--speed", "7"], "--speed"),
        (["keys", "audit", "--keys-per-second", "none"], "--keys-per-second"),
        (["keys", "list", "--format", "yaml"], "yaml"),
        (["keys", "show"], "PATTERN"),
    ],
)
def test_wrong_usage_is_one_line_that_points_to_the_help(arguments, says):
    line = keystead(*arguments).refused()
    assert says in line
    assert "--help" in line


def test_unknown_scheme_is_refused():
    line = keystead("keys", "audit", "mysql://localhost").refused()
    assert "mysql" in line and "valkey://" in line


def test_address_without_scheme_is_refused():
    assert "scheme" in keystead("keys", "audit", "localhost:6379").refused()


def test_wrong_password_is_refused_without_repeating_it(valkey_server):
    valkey_server.ensure_running()
    valkey_server.call("ACL", "SETUSER", "clerk", "on", ">right", "~*", "+@all")
    try:
        line = keystead("keys", "audit", f"valkey://clerk:wrongword@127.0.0.1:{valkey_server.port}").refused()
    finally:
        valkey_server.call("ACL", "DELUSER", "clerk")
    assert "clerk" in line and "password" in line
    assert "wrongword" not in line


def test_server_that_is_too_old_is_refused():
    with old_server() as port:
        line = keystead("jobs", "list", "--url", f"redis://127.0.0.1:{port}").refused()
    assert "6.2.0" in line and "Redis 7" in line and "Valkey 8" in line


def test_server_that_is_away_is_refused():
    line = keystead("keys", "explain", "x", "--url", "valkey://127.0.0.1:1").refused()
    assert "127.0.0.1:1" in line


def test_server_refusal_is_one_line(valkey_server):
    valkey_server.ensure_running()
    valkey_server.call("ACL", "SETUSER", "blind", "on", ">word", "~*", "+ping", "+hello", "+dbsize", "+info")
    try:
        line = keystead("keys", "audit", f"valkey://blind:word@127.0.0.1:{valkey_server.port}").refused()
    finally:
        valkey_server.call("ACL", "DELUSER", "blind")
    assert "does not let us" in line and "scan" in line.lower()


def test_bad_setting_is_refused():
    assert "KEYSTEAD_HTTP_PORT" in keystead("keys", "audit", KEYSTEAD_HTTP_PORT="many").refused()


def test_settings_file_that_is_missing_is_refused(tmp_path):
    assert "nowhere.toml" in keystead("--config", tmp_path / "nowhere.toml", "keys", "audit").refused()


def test_reader_that_goes_away_ends_the_command_quietly():
    with subprocess.Popen([sys.executable, "-m", "keystead.cli", "keys", "list"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(PYTHONUNBUFFERED="1")) as process:
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == entry.READER_GONE
    assert "Traceback" not in said and "Exception" not in said


def test_interrupt_is_quiet(valkey_server):
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    valkey_server.call("DEBUG", "POPULATE", "100000")
    valkey_server.call("CONFIG", "RESETSTAT")
    with subprocess.Popen(
        [sys.executable, "-m", "keystead.cli", "keys", "audit", valkey_server.url, "--keys-per-second", "500"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        # Whoever starts the tests in the background has them ignore interrupts, and their children with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        # Until it walks the keys: a connection could be anyone's, and a program still being loaded knows no manners.
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and b"cmdstat_scan" not in valkey_server.call("INFO", "commandstats"):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (entry.INTERRUPTED, b"", b"")


def test_refusal_is_one_printable_line(capsys):
    assert entry._refuse("two\nlines and \x1b[31mcolour") == entry.COULD_NOT
    assert capsys.readouterr().err == "keystead: two lines and \\x1b[31mcolour\n"


def test_json_stays_valid_beside_notes():
    outcome = keystead("keys", "list", "--format", "json")
    assert outcome.code == 0
    assert isinstance(json.loads(outcome.out), list)


def test_one_reason_of_a_failed_group_is_told(monkeypatch, capsys):
    def fail(**_: object) -> None:
        raise ExceptionGroup("work", [ExceptionGroup("inner", [Unavailable("the server went away")])])

    monkeypatch.setattr(entry, "program", fail)
    assert entry.run([]) == entry.COULD_NOT
    assert capsys.readouterr().err == "keystead: the server went away\n"


def test_a_bug_is_shown_as_one(monkeypatch):
    def fail(**_: object) -> None:
        raise ExceptionGroup("work", [Unavailable("away"), ZeroDivisionError()])

    monkeypatch.setattr(entry, "program", fail)
    with pytest.raises(ExceptionGroup):
        entry.run([])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_result_that_cannot_be_written_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "keystead.cli", "keys", "list", "--format", "json"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False, env=environment())
    assert done.returncode == entry.COULD_NOT
    assert done.stderr == "keystead: the result cannot be written: No space left on device\n"


def on_a_terminal(*arguments: str, **env: str) -> str:
    """What a command shows someone who sits at a terminal."""
    controller, terminal = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "keystead.cli", *arguments], stdin=terminal, stdout=terminal,
                          stderr=terminal, env=environment(**{"TERM": "xterm-256color", **env})):
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal reads as an error
            while piece := os.read(controller, 65536):
                shown += piece
    os.close(controller)
    return shown.decode()


def test_colours_appear_on_a_terminal_only_and_not_under_no_color():
    assert "\x1b[" in on_a_terminal("keys", "show", "api_ip")
    assert "\x1b[" not in on_a_terminal("keys", "show", "api_ip", NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("keys", "show", "api_ip", TERM="dumb")


def test_audit_shows_a_bar_to_whoever_watches(valkey_server):
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    valkey_server.call("DEBUG", "POPULATE", "3000")
    shown = on_a_terminal("keys", "audit", valkey_server.url, "--keys-per-second", "3000")
    assert "Auditing" in shown
    assert "/3000" in shown
