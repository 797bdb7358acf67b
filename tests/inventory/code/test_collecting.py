"""What all uses of a pattern say together."""

from pathlib import Path

from keystead.inventory import Rule

from .reading_code import read

HEAD = "import redis, json\nr = redis.Redis()\n"


def test_one_entry_for_all_names_of_a_variable(tmp_path: Path) -> None:
    (entry,) = read(tmp_path, a_py=HEAD + 'r.get(f"u:{x}")\nr.get(f"u:{user_id}")\nr.get(f"u:{id}")\n').entries

    assert entry.pattern == "u:{user_id}" and [source.line for source in entry.sources] == [3, 4, 5]


def test_the_more_telling_type_of_a_string_wins(tmp_path: Path) -> None:
    found = read(tmp_path,
                 a_py=HEAD + 'r.get("a:1")\nr.incr("a:1")\nr.get("b:1")\nr.set("b:1", json.dumps(x))\n').entries

    assert [entry.type.value for entry in found if entry.type] == ["integer", "json"]


def test_commands_of_two_types_are_a_note(tmp_path: Path) -> None:
    found = read(tmp_path, a_py=HEAD + 'r.hset("a:1", "f", 1)\nr.get("a:1")\n')

    kind = found.entries[0].type
    assert kind is not None and kind.value == "hash" and not kind.sure
    assert "different types: hash (HSET at" in found.notes[0].says


def test_expiries_that_differ_and_one_that_is_forgotten_are_notes(tmp_path: Path) -> None:
    found = read(tmp_path, a_py=HEAD + """
def a(): r.set("a:1", 1, ex=60)
def b(): r.set("a:1", 1, ex=120)
def c(): r.set("a:1", 1)
""")
    ttl = found.entries[0].ttl

    assert ttl is not None and (ttl.value.rule, ttl.value.seconds) == (Rule.AT_MOST, 120)
    assert {"60 s at" in note.says for note in found.notes} == {True, False}
    assert any("written without an expiry here" in note.says and note.source and note.source.line == 6
               for note in found.notes)


def test_a_wildcard_that_fits_nothing_is_an_entry_to_look_at(tmp_path: Path) -> None:
    (entry,) = read(tmp_path, a_py=HEAD + 'r.keys("old:*:x*")').entries

    assert (entry.pattern, entry.uncertain) == ("old:{any}:x{rest}", "seen only as a wildcard")


def test_braces_of_a_hash_tag_are_a_doubt(tmp_path: Path) -> None:
    found = read(tmp_path, a_py=HEAD + 'r.get("{cart}:1")\nr.get(f"{{user:{uid}}}:a")').entries

    assert "hash tag" in found[0].uncertain
    assert found[1].pattern == "{user:{uid}}:a"


def test_no_expiry_is_sure_only_if_every_expire_was_followed(tmp_path: Path) -> None:
    (entry,) = read(tmp_path, a_py=HEAD + 'r.zadd("a:1", {})\n').entries
    assert entry.ttl is not None and entry.ttl.value.rule is Rule.NONE and entry.ttl.sure

    (entry,) = read(tmp_path, a_py=HEAD + 'r.zadd("a:1", {})\ndef f(key): r.expire(key, 5)\n').entries
    assert entry.ttl is not None and entry.ttl.value.rule is Rule.NONE and not entry.ttl.sure
