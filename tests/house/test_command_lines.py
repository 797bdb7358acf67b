"""What readers are told to type is what the command takes."""

from pathlib import Path

import pytest
import typer

from .command_lines import accepted, command_lines
from .source import PROJECT

PAGES = [
    PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md")), *sorted((PROJECT / "src").rglob("README.md")),
    PROJECT / "deploy" / "README.md",
]
LINES = [pytest.param(line, id=f"{page.relative_to(PROJECT)}: {' '.join(line)[:60]}")
         for page in PAGES for line in command_lines(page)]


def test_there_are_lines_to_check() -> None:
    assert len(LINES) > 20
    assert accepted(["api", "--processes", "2"]) == "api"
    assert accepted(["config", "show", "http"]) == "config show"


@pytest.mark.parametrize("wrong", [["api", "--procs", "2"], ["konfig"], ["worker", "--processes", "many"]])
def test_a_line_that_is_wrong_is_noticed(wrong: list[str]) -> None:
    with pytest.raises(typer.BadParameter.__bases__[0]):
        accepted(wrong)


@pytest.mark.parametrize("line", LINES)
def test_the_command_takes_the_line(line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    accepted(line)
