"""Every Lua script's header says what its body does."""

import re
from pathlib import Path

import pytest

from keystead.engine.script_header import body_problems
from keystead.engine.scripts import Script

from .source import SOURCE, scripts

LONGEST_BODY_LINES = 60
WHOLE = [path for path in scripts() if not path.name.startswith("_")]
FRAGMENTS = [path for path in scripts() if path.name.startswith("_")]


def name(path: Path) -> str:
    return "/".join(path.parts[-2:])


def split(path: Path) -> tuple[list[str], list[str]]:
    """Header comments (without the first line) and body of a script, shared fragments joined in."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = 1
    while start < len(lines) and lines[start].startswith("--") and not lines[start].startswith("-- include"):
        start += 1
    package, _, inside = str(path.relative_to(SOURCE.parent)).partition("/scripts/")
    script = Script(package.replace("/", "."), f"scripts/{inside}")
    return lines[1:start], script.text.splitlines()[start:]


def code(body: list[str]) -> str:
    return "\n".join(re.sub(r"--.*", "", line) for line in body)


def documented(header: list[str], table: str) -> set[int | str]:
    """The numbers that the header gives to KEYS or ARGV; ``n`` stands for as many as come."""
    found: set[int | str] = set()
    for line in header:
        if match := re.match(rf"-- {table}\[(\d+)(\.\.)?(\w+)?\]\s+\S+\s+\S+", line):
            found.add(int(match[1]))
            if match[2]:
                found.add("…")
    return found


def used(source: str, table: str) -> set[int | str]:
    found: set[int | str] = {int(number) for number in re.findall(rf"\b{table}\[(\d+)\]", source)}
    if re.search(rf"\b{table}\[(?!\d+\])|#{table}\b|unpack\({table}|pairs\({table}", source):
        found.add("…")
    return found


def test_there_are_scripts_to_check():
    assert WHOLE


@pytest.mark.parametrize("path", WHOLE, ids=name)
def test_header_names_exactly_what_the_body_uses(path):
    header, body = split(path)
    source = code(body)
    for table in ("KEYS", "ARGV"):
        said, does = documented(header, table), used(source, table)
        assert said - {"…"} == does - {"…"} or "…" in said, f"{table}: header {said}, body {does}"
        assert ("…" in said) == ("…" in does), f"{table}: header and body disagree on a varying number"
        numbers = sorted(number for number in said if isinstance(number, int))
        assert numbers == list(range(1, len(numbers) + 1)), f"{table} must be numbered from 1 without gaps"


@pytest.mark.parametrize("path", WHOLE, ids=name)
def test_header_states_purpose_answer_and_cost(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!lua", "the server checks slots only for scripts that begin with #!lua"
    header, _ = split(path)
    assert re.match(rf"-- {path.stem}: \S", header[0]), "the first line says what the script is for"
    assert sum(line.startswith("-- Returns  ") for line in header) == 1
    cost = [line for line in header if line.startswith("-- Cost     ")]
    assert len(cost) == 1
    assert "O(" in cost[0]
    assert re.search(r"Repeat: (safe|not safe)", " ".join(header)), "says whether a lost reply may be repeated"


@pytest.mark.parametrize("path", scripts(), ids=name)
def test_a_file_is_short_enough_to_be_read_at_once(path):
    """What is shared lies in a fragment, which counts for itself; so do comments and blank lines, not at all."""
    lines = code(path.read_text(encoding="utf-8").splitlines()).splitlines()
    assert len([line for line in lines if line.strip() and line != "#!lua"]) <= LONGEST_BODY_LINES


@pytest.mark.parametrize("path", WHOLE, ids=name)
def test_time_comes_in_as_an_argument(path):
    _, body = split(path)
    assert not re.search(r"['\"]TIME['\"]", code(body), re.IGNORECASE), "time comes in as ARGV"


@pytest.mark.parametrize("path", WHOLE, ids=name)
def test_every_command_names_its_key_by_a_local(path):
    """A key reaches a command through KEYS or a template, never as text written into the script."""
    _, body = split(path)
    calls = re.findall(r"redis\.p?call\(\s*['\"]\w+['\"]\s*,\s*(['\"])", code(body))
    assert not calls


@pytest.mark.parametrize("path", WHOLE, ids=name)
def test_the_engine_reads_the_same_header(path):
    problems = body_problems("\n".join(["#!lua", *split(path)[0], *split(path)[1]]))
    assert not [problem for problem in problems if not problem.startswith("the body has ")]


def test_every_fragment_is_included_by_a_script():
    """Beside it by its name, elsewhere by the name of its package and its path."""
    lines = {path: path.read_text(encoding="utf-8").splitlines() for path in scripts()}
    for fragment in FRAGMENTS:
        package, _, inside = str(fragment.relative_to(SOURCE.parent).with_suffix("")).partition("/scripts/")
        far = f"-- include {package.replace('/', '.')}:scripts/{inside}"
        near = f"-- include {fragment.stem}"
        users = [path for path, found in lines.items()
                 if far in found or (near in found and path.parent == fragment.parent)]
        assert users, f"{fragment.name} is included by nothing"
