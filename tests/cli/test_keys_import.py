"""A document becomes a file, and a person is told what to look at."""

from pathlib import Path

import pytest

from keystead.inventory import read_inventory

from .command import keystead

DOCUMENT = """\
# Redis keys

| Key | Type | TTL | Purpose |
|---|---|---|---|
| `user:<ID>` | Hash | none | the profile of a user |
| `session:{token}` | string | 30 min | who is logged in |
| `odd:{thing}` | | | nobody remembers |
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "redis-keys.md").write_text(DOCUMENT)
    return tmp_path


def test_document_becomes_an_inventory(folder: Path) -> None:
    done = keystead("keys", "import", "redis-keys.md", cwd=folder)

    assert done.code == 0, done.err
    assert [entry.pattern for entry in read_inventory(folder / "keystead.toml").entries] == [
        "user:{id}", "session:{token}", "odd:{thing}"]
    assert "3 key patterns in redis-keys.md" in done.out
    assert "redis-keys.md:7  odd:{thing}: its type is not said" in done.out
    assert done.err == "keystead: wrote 3 patterns to keystead.toml\n"
    assert "user:{id}" in keystead("keys", "list", cwd=folder).out, "and is used from now on"


def test_what_is_there_is_not_lost(folder: Path) -> None:
    (folder / "keystead.toml").write_text("[[key]]\npattern = \"mine\"\n")
    assert "add --force" in keystead("keys", "import", "redis-keys.md", cwd=folder).refused()
    assert keystead("keys", "import", "redis-keys.md", "--force", cwd=folder).code == 0
    assert len(read_inventory(folder / "keystead.toml").entries) == 3

    (folder / "keystead.toml").write_text("[http]\nport = 1\n")
    refused = keystead("keys", "import", "redis-keys.md", "--force", cwd=folder).refused()
    assert "also holds settings (http)" in refused
    assert (folder / "keystead.toml").read_text() == "[http]\nport = 1\n"


def test_ending_or_flag_says_the_format(folder: Path) -> None:
    assert keystead("keys", "import", "redis-keys.md", "--out", "keys.yml", cwd=folder).code == 0
    assert keystead("keys", "import", "redis-keys.md", "--out", "keys.inventory", "--format", "json",
                    cwd=folder).code == 0
    assert (folder / "keys.yml").read_text().startswith("inventory:")
    assert (folder / "keys.inventory").read_text().startswith("{")

    streamed = keystead("keys", "import", "redis-keys.md", "-o", "-", "--format", "yaml", cwd=folder)
    assert streamed.out == (folder / "keys.yml").read_text(), "nothing but the file"
    assert "3 key patterns" in streamed.err


def test_python_module_serves_as_a_registry(folder: Path) -> None:
    done = keystead("keys", "import", "redis-keys.md", "--python", cwd=folder)

    assert done.code == 0
    assert "1 of them are written as comments" in done.err
    listed = keystead("keys", "list", "--registry", "redis_keys", cwd=folder)
    assert "user:{id}" in listed.out and "odd:{thing}" not in listed.out
    assert "takes no --format" in keystead("keys", "import", "redis-keys.md", "--python", "--format", "yaml",
                                           cwd=folder).refused()


def test_document_without_keys_is_refused(folder: Path) -> None:
    (folder / "poem.md").write_text("Roses are red.\n")

    assert "no key is described in it" in keystead("keys", "import", "poem.md", cwd=folder).refused()
    assert not (folder / "keystead.toml").exists()
