"""Whole projects in five languages, and input that is no program."""

import subprocess
import sys
from pathlib import Path

import pytest

from keystead.errors import Invalid
from keystead.inventory import Certainty
from keystead.inventory.code import read_code

from .reading_code import SAMPLES, facts, patterns, read, written

EXPECTED = {
    "python": {
        ("shop:cart:{user_id}", "hash", "exactly", 30 * 86400.0), ("shop:order:{order_id}", "json", "exactly", 7200.0),
        ("orders.paid", "", "", None), ("orders.sent", "", "", None), ("stock:{sku}", "hash", "none", None),
        ("stock:{sku}:takers", "zset", "none", None), ("visits:{page}:{date}", "integer", "none", None),
        ("visitors:{date}", "hyperloglog", "none", None), ("session:{sid}", "", "", None),
        ("page:long:{page_id}", "string", "exactly", 600.0), ("page:short:{page_id}", "string", "exactly", 60.0),
        ("rendered:{page_id}", "string", "exactly", 90.0), ("profile:{name}", "string", "exactly", 300.0),
        ("ticket:{user_id}", "string", "", None), ("lock:profile:{user_id}", "lock", "exactly", 10.0),
        ("members:{user_id}", "set", "none", None), ("events", "stream", "none", None),
    },
    "go": {
        ("shop:session:{token}", "string", "exactly", 86400.0), ("user:{id}", "hash", "exactly", 604800.0),
        ("inventory:count:{item}", "integer", "none", None), ("room:{room}:online", "zset", "none", None),
        ("stock:{sku}", "integer", "exactly", 1.5), ("taken:{sku}", "list", "none", None),
        ("rate:{ip}:{window}", "string", "exactly", 60.0), ("limited", "set", "none", None), ("prices", "", "", None),
        ("orders.paid", "", "", None), ("journal", "stream", "", None),
    },
    "typescript": {
        ("limit:{route}:{ip}", "integer", "exactly", 300.0), ("last:{ip}", "string", "none", None),
        ("log:{route}", "list", "none", None), ("sess:{id}", "json", "exactly", 1800.0),
        ("ranking:global", "zset", "none", None), ("tokens", "set", "none", None), ("token:{id}", "", "", None),
        ("user:{id}", "string", "", None), ("feed:{user_id}", "list", "exactly", 7200.0),
        ("code:{email}", "string", "exactly", 300.0), ("settings", "hash", "none", None),
        ("once:{email}", "string", "exactly", 3600.0), ("mail", "", "", None), ("mails:{day}", "integer", "none", None),
    },
    "java": {
        ("shop:token:{token}", "string", "exactly", 7200.0), ("user:{id}", "hash", "exactly", 604800.0),
        ("greeting:{user_id}", "string", "exactly", 300.0), ("logins", "", "", None),
        ("cart:{id}:items", "zset", "none", None), ("count:{item}", "integer", "none", None),
        ("lock:order:{id}", "lock", "exactly", 30.0), ("mail:{id}:3", "string", "exactly", 120.0),
        ("tags:{id}", "set", "none", None), ("guard:{id}", "lock", "", None), ("users::{id}", "string", "", None),
        ("users::all:{region_id}", "string", "", None),
    },
    "ruby": {
        ("store:{name}", "json", "exactly", 7200.0), ("app:session:{token}", "hash", "exactly", 1800.0),
        ("app:job:{id}", "list", "none", None), ("feed:{id}", "zset", "none", None),
        ("visits:{day}", "integer", "none", None), ("visitors:{day}:{user_id}", "set", "none", None),
        ("visits", "", "", None), ("page/{user_id}", "string", "exactly", 600.0), ("thing:{id}", "string", "", None),
        ("own:queue", "list", "none", None),
    },
}


@pytest.mark.parametrize("language", EXPECTED)
def test_a_project_gives_exactly_its_keys(language: str) -> None:
    found = read_code([SAMPLES / language])

    assert {facts(entry) for entry in found.entries} == EXPECTED[language]
    assert not [entry.pattern for entry in found.entries if entry.uncertain]


@pytest.mark.parametrize(("language", "where"), [
    ("python", "shop/wrapper.py:34"), ("go", "store/store.go:64"), ("ruby", "app/store.rb:46"),
])
def test_a_key_that_cannot_be_followed_is_a_note_with_its_place(language: str, where: str) -> None:
    found = read_code([SAMPLES / language])

    assert [str(note.source).endswith(where) for note in found.notes] == [True]


def test_writers_and_readers_have_function_command_file_and_line() -> None:
    found = {entry.pattern: entry for entry in read_code([SAMPLES / "python"]).entries}
    cart = found["shop:cart:{user_id}"]

    assert [(fact.value, fact.words) for fact in cart.writers] == [("add", "HSET, EXPIRE")]
    assert [(fact.value, fact.words) for fact in cart.readers] == [("total", "HVALS")]
    assert cart.writers[0].source is not None and str(cart.writers[0].source).endswith("shop/carts.py:27")
    assert cart.variables == (("user_id", "integer"),)
    # Said there, or followed through a constant.
    assert found["page:long:{page_id}"].ttl.certainty is Certainty.STATED  # type: ignore[union-attr]
    assert cart.ttl is not None and cart.ttl.certainty is Certainty.IMPLIED and cart.ttl.words == "30 * DAY"


def test_whoever_scans_reads_what_fits() -> None:
    found = {entry.pattern: entry for entry in read_code([SAMPLES / "python"]).entries}

    assert [(fact.value, fact.words) for fact in found["visits:{page}:{date}"].readers] == [("forget", "SCAN")]
    assert ("forget", "UNLINK") in [(fact.value, fact.words) for fact in found["visits:{page}:{date}"].writers]


def test_files_that_are_no_programs_are_notes_and_stop_nothing(tmp_path: Path) -> None:
    written(tmp_path, good_py='import redis\nredis.Redis().get("a:b")\n')
    (tmp_path / "binary.py").write_bytes(b"redis\0\1\2" * 100)
    (tmp_path / "huge.js").write_bytes(b"redis;\n" * 300_000)
    (tmp_path / "packed.js").write_bytes(b"redis.get('x:y');" * 5000)
    (tmp_path / "broken.py").write_text('import redis\ndef f(:\n  r = redis.Redis(\nredis_client.get("c:d")\n}}}')
    (tmp_path / "latin.rb").write_bytes('redis.get("é:1")\n'.encode("latin-1"))
    (tmp_path / "deep.py").write_text("import redis\nx = " + "(" * 3000 + "1" + ")" * 3000)
    (tmp_path / "empty.go").write_text("")

    found = read_code([tmp_path])

    assert {"a:b", "c:d"} <= set(patterns(found))
    said = {Path(note.source.file).name: note.says for note in found.notes if note.source}
    assert "not text" in said["binary.py"] and "larger" in said["huge.js"] and "packer" in said["packed.js"]
    assert "understood" in said["broken.py"]


def test_any_bytes_give_an_inventory(tmp_path: Path) -> None:
    """Pieces of the samples in any order: what comes out does not matter, that something does."""
    import random

    pieces = [line for path in sorted(SAMPLES.rglob("*.*")) for line in path.read_bytes().splitlines()]
    chance = random.Random(7)
    for suffix in ("py", "go", "ts", "js", "java", "rb", "lua"):
        for number in range(12):
            lines = chance.choices(pieces, k=60)
            (tmp_path / f"f{number}.{suffix}").write_bytes(b"\n".join([b"redis", *lines]))

    assert read_code([tmp_path]).name == "code"


def test_a_constant_and_a_caller_are_found_in_files_that_never_speak_of_redis(tmp_path: Path) -> None:
    found = read(tmp_path, app__names_py='ACCOUNT = "account"\n',
                 app__store_py="""
                     import redis
                     from app.names import ACCOUNT
                     client = redis.Redis()
                     def remember(suffix, value):
                         client.set(f"{ACCOUNT}:{suffix}", value, ex=60)
                     def fetch_raw(key):
                         return client.get(key)
                     """,
                 app__views_py="""
                     from app.store import fetch_raw
                     def view(order_id):
                         return fetch_raw(f"order:{order_id}")
                     """)

    assert patterns(found) == ["account:{suffix}", "order:{order_id}"]
    assert [fact.value for fact in found.entries[1].readers] == ["view"]


def test_a_path_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="does not exist"):
        read_code([tmp_path / "nothing"])


def test_without_the_parsers_it_says_what_to_install(tmp_path: Path) -> None:
    written(tmp_path, a_py='import redis\nredis.Redis().get("a:b")\n')
    script = ("import sys; sys.modules['tree_sitter'] = None\n"
              "from keystead.inventory.code import read_code\n"
              f"try:\n    read_code([{str(tmp_path)!r}])\nexcept Exception as error:\n    print(error)\n")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "pip install 'keystead[code]'" in said.stdout and said.stdout.count("\n") == 1


def test_our_own_sources_give_no_false_keys() -> None:
    """Keystead declares its keys and never spells one out, so nothing that a command uses is found with certainty."""
    source = Path(__file__).parents[3] / "src" / "keystead"
    found = read_code([source / "patterns", source / "edge", source / "jobs"], guesses=False)

    assert [entry.pattern for entry in found.entries if not entry.uncertain] == []


def test_a_module_is_read_for_a_name_however_common_or_short_it_is(tmp_path: Path) -> None:
    found = read(tmp_path, src__keys_ts="""
        export const keys = { room: (id: string) => `room:${id}` } as const;
        export const TTL = 30;
    """, src__rooms_ts="""
        import Redis from "ioredis";
        import { keys, TTL } from "./keys";
        const redis = new Redis();
        export async function open(id: string) { await redis.setex(keys.room(id), TTL, "1"); }
    """)
    assert [facts(entry) for entry in found.entries] == [("room:{id}", "string", "exactly", 30.0)]
