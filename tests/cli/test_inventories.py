"""Commands work with what a user wrote down, in whatever file it is."""

import json
from pathlib import Path

import pytest

from keystead.cli.inventories import chosen_inventory, load_inventory
from keystead.errors import Invalid
from keystead.inventory import Expiry, Rule

from .command import keystead

DOCUMENT = """\
# Redis keys

## Users

| Key | Type | TTL | Purpose | Written by |
|---|---|---|---|---|
| `user:<ID>` | Hash | none | the profile of a user | accounts |
| `session:{token}` | string | 30 min | who is logged in | web |

## Jobs

| Key | Type | TTL | Purpose | Written by |
|---|---|---|---|---|
| `jobs:hot` | list | none | jobs that wait | web |
"""
TOML = '[[key]]\npattern = "user:{id}"\ntype = "hash"\npurpose = "a user"\npersonal = true\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "redis-keys.md").write_text(DOCUMENT)
    return tmp_path


def patterns(*paths: Path) -> list[str]:
    return [entry.pattern for entry in load_inventory(paths).entries]


def test_a_document_and_a_file_are_read_as_one(folder: Path) -> None:
    (folder / "keys.toml").write_text(TOML + '[[key]]\npattern = "extra"\n')

    assert patterns(folder / "redis-keys.md") == ["user:{id}", "session:{token}", "jobs:hot"]
    assert patterns(folder / "keys.toml", folder / "redis-keys.md") == [
        "user:{id}", "extra", "session:{token}", "jobs:hot"]


def test_heading_that_is_the_key_is_no_section(tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n\n## Carts\n\nAll carts.\n\n### `cart:{user_id}`\n\nWhat someone may "
                                      "buy.\n\n- Type: hash\n- TTL: 30 min sliding\n")

    inventory = load_inventory([tmp_path / "keys.md"])

    [entry] = inventory.entries
    assert entry.section == ("Keys", "Carts")
    assert inventory.sections == ((("Keys", "Carts"), "All carts."),)
    assert entry.ttl is not None and entry.ttl.value == Expiry(Rule.SLIDING, 1800), "without words that say it again"


def test_a_folder_and_a_glob_take_what_describes_keys(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (folder / "config.yaml").write_text("host: localhost\n")
    (folder / "empty.md").write_text("")
    (folder / ".hidden.md").write_text(DOCUMENT.replace("jobs:hot", "hidden:key"))
    (folder / "more.yml").write_text("keys:\n- pattern: more:{id}\n")

    assert set(patterns(folder)) == {"user:{id}", "session:{token}", "jobs:hot", "more:{id}"}
    assert patterns(folder / "*.yml") == ["more:{id}"]


@pytest.mark.parametrize(("name", "says"), [
    ("missing.md", "is not there"), ("*.nothing", "fits no file"), ("empty.md", "is empty"),
    ("settings.toml", "there are no .*tables; is it an inventory"), ("blank", "holds no document"),
    ("picture.md", "is not text"),
])
def test_what_describes_no_key_is_refused(folder: Path, name: str, says: str) -> None:
    (folder / "empty.md").write_text("")
    (folder / "settings.toml").write_text("[http]\nport = 1\n")
    (folder / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 50)
    (folder / "blank").mkdir()

    with pytest.raises(Invalid, match=says):
        load_inventory([folder / name])


def test_keystead_toml_is_taken_if_it_lists_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keystead.toml").write_text("[http]\nport = 1\n")
    assert chosen_inventory(None) is None
    assert len(load_inventory(None).entries) > 50, "the declarations"

    (tmp_path / "keystead.toml").write_text(TOML)
    assert [entry.pattern for entry in load_inventory(None).entries] == ["user:{id}"]
    assert chosen_inventory(None, ["shop.keys"]) is None


def test_commands_answer_from_a_document(folder: Path) -> None:
    listed = keystead("keys", "list", "--inventory", "redis-keys.md", cwd=folder)
    assert listed.code == 0
    assert "session:{token}" in listed.out and "30 min" in listed.out and "Jobs" in listed.out
    assert "3 in redis-keys.md" in listed.err

    explained = keystead("keys", "explain", "user:7", "--offline", "--inventory", "redis-keys.md", cwd=folder)
    assert explained.code == 0
    assert "user:{id}" in explained.out and "id = 7" in explained.out and "redis-keys.md:7" in explained.out

    unknown = keystead("keys", "explain", "nobody:knows", "--offline", "--inventory", "redis-keys.md", cwd=folder)
    assert unknown.code == 1
    assert "redis-keys.md does not describe this key" in unknown.out


def test_mistake_in_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text('[[key]]\npattern = "a"\n\n[[key]]\ntipe = "hash"\n')

    refused = keystead("keys", "list", "--inventory", "keys.toml", cwd=tmp_path).refused()
    assert refused.startswith("keys.toml:4: there is no field tipe; did you mean type?")


def test_environment_names_the_inventory(folder: Path) -> None:
    rows = json.loads(keystead("keys", "list", "--format", "json", cwd=folder, KEYSTEAD_INVENTORY="redis-keys.md").out)
    assert [row["pattern"] for row in rows] == ["user:{id}", "session:{token}", "jobs:hot"]


def test_generated_page_takes_the_place_of_the_document(folder: Path) -> None:
    written = keystead("keys", "docs", "--inventory", "redis-keys.md", "-o", "generated.md", cwd=folder)
    assert written.code == 0, written.err
    page = (folder / "generated.md").read_text()
    assert page.index("## Users") < page.index("### `session:{token}`") < page.index("## Jobs")

    again = keystead("keys", "docs", "--inventory", "generated.md", cwd=folder)
    assert again.out == page
    html = keystead("keys", "docs", "--html", "--inventory", "redis-keys.md", cwd=folder)
    assert html.out.startswith("<!doctype html>") and "session:{token}" in html.out


def test_pattern_that_stands_twice_in_a_file_is_one_entry(tmp_path: Path) -> None:
    file = tmp_path / "keystead.toml"
    file.write_text('[[key]]\npattern = "a"\ntype = "hash"\n[[key]]\npattern = "a"\ntype = "list"\nttl = 60\n')
    inventory = load_inventory([file])
    (entry,) = inventory.entries
    assert entry.type is not None and entry.type.value == "hash" and entry.ttl is not None
    assert "but list" in inventory.notes[0].says


def test_file_of_the_folder_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keystead.toml").write_bytes(b"\xff\xfe[\x00[\x00k\x00e\x00y\x00")
    assert "not UTF-8 text" in keystead("keys", "list", cwd=tmp_path).refused()
