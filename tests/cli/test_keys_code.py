"""``keystead keys code``."""

import json
from pathlib import Path

from keystead.inventory import read_inventory

from .command import keystead

SAMPLES = Path(__file__).parents[1] / "inventory" / "code" / "samples"


def test_table_shows_patterns_with_what_the_code_says() -> None:
    shown = keystead("keys", "code", SAMPLES / "go")

    assert shown.code == 0, shown.err
    (row,) = [line for line in shown.out.splitlines() if "shop:session:{token}" in line]
    assert "string" in row and "1 d" in row and "Store.Save" in row and row.endswith("store/store.go:39")
    assert "11 patterns" in shown.err and "store.go:64: the key of GET is key" in shown.err


def test_json_has_commands_lines_and_notes() -> None:
    said = json.loads(keystead("keys", "code", SAMPLES / "ruby", "--format", "json").out)
    (key,) = [key for key in said["keys"] if key["pattern"] == "app:session:{token}"]

    assert key["type"] == "hash" and key["ttl"] == "30 min"
    assert key["writers"][0]["name"] == "Store.save" and key["writers"][0]["commands"] == ["HSET", "EXPIRE"]
    assert said["notes"][0]["source"].endswith("store.rb:46")


def test_out_is_an_inventory_that_other_commands_take(tmp_path: Path) -> None:
    out = tmp_path / "code.toml"
    written = keystead("keys", "code", SAMPLES / "java", "--out", out)

    assert written.code == 0 and written.out == "", written.err
    assert len(read_inventory(out).entries) == 12
    assert "cart:{id}:items" in keystead("keys", "list", "--inventory", out).out
    assert "says no format" in keystead("keys", "code", SAMPLES / "java", "--out", tmp_path / "x").refused()


def test_a_path_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "does not exist" in keystead("keys", "code", tmp_path / "nothing").refused()
