import pytest

from keystead.cli.commands import program
from keystead.cli.docs import commands

from .command import keystead


def test_the_tree_is_the_documented_one():
    assert [path for path, _, _ in commands()] == [
        "keystead", "keystead up", "keystead login-link", "keystead keys list", "keystead keys show",
        "keystead keys docs", "keystead keys explain", "keystead keys audit", "keystead config show",
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
