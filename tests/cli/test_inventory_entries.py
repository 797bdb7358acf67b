"""Lists of what is written down."""

import json
from pathlib import Path

import pytest

from .command import keystead

KEYS = '''
[[key]]
pattern = "user:{id}"
spelling = "user:<ID>"
section = ["Users", "Profiles"]
type = "hash"
ttl = "30 min"
purpose = "a user. More of it."
writers = ["web", "jobs"]
personal = true
guessed = ["ttl", "personal"]
variables = { id = "uuid" }
extra = { Owner = "blue" }
source = "redis-keys.md:7"

[[key]]
pattern = "user:{id}:cart"
section = ["Shop"]
uncertain = "the brace may be a hash tag"

[[channel]]
pattern = "news"
section = ["Shop"]
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keystead.toml").write_text(KEYS)
    return tmp_path


def test_what_is_a_guess_is_marked(folder: Path) -> None:
    listed = keystead("keys", "list", cwd=folder)

    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in listed.out.splitlines()]
    assert ["user:{id}", "hash", "30 min ?", "Profiles", "a user."] in rows
    assert ["user:{id}:cart ?", "Shop"] in rows
    assert ["news", "channel", "Shop"] in rows
    assert "3 in keystead.toml, 2 with something to look at (?)" in listed.err


def test_list_can_be_narrowed_to_a_section_or_to_personal_data(folder: Path) -> None:
    rows = json.loads(keystead("keys", "list", "--room", "Shop", "--format", "json", cwd=folder).out)
    assert [row["pattern"] for row in rows] == ["user:{id}:cart", "news"]
    rows = json.loads(keystead("keys", "list", "--personal", "--format", "json", cwd=folder).out)
    assert [row["pattern"] for row in rows] == ["user:{id}"]
    assert "there are Users, Profiles, Shop" in keystead("keys", "list", "--room", "no", cwd=folder).refused()


@pytest.mark.parametrize("wanted", ["user:{id}", "user:<ID>", "user:7"])
def test_show_finds_a_pattern_by_any_of_its_names(folder: Path, wanted: str) -> None:
    shown = keystead("keys", "show", wanted, cwd=folder)

    assert shown.code == 0
    for part in ("Users / Profiles", "30 min ?", "yes ?", "web, jobs", "id: uuid", "blue", "redis-keys.md:7",
                 "user:<ID>"):
        assert part in shown.out


def test_show_says_what_is_near(folder: Path) -> None:
    assert "fits 2 patterns: user:{id}, user:{id}:cart" in keystead("keys", "show", "ser", cwd=folder).refused()
    assert "did you mean news?" in keystead("keys", "show", "mews", cwd=folder).refused()
    assert "user:{id}:cart" in keystead("keys", "show", "cart", cwd=folder).out
