"""Whole documents: samples of many kinds, the five seed documents, and what is no document."""

import csv
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.inventory.documents import NotADocument, read_document
from keystead.inventory.documents.reading import kind_of
from keystead.inventory.models import Certainty
from keystead.inventory.patterns import normalise, shape

from .samples import answers, document, names, ttl_of

ROOT = Path(__file__).parents[3]
SEEDS = ROOT.parent / "shared" / "seeds"
needs_seeds = pytest.mark.skipif(
    not SEEDS.is_dir(), reason="the five documents it was built for are not beside the project"
)


@pytest.mark.parametrize("name", names())
def test_a_sample_is_read_exactly(name):
    inventory = read_document(document(name), document(name).name)
    wanted = answers(name)
    read = {
        (entry.kind, entry.pattern): ("-" if entry.type is None else entry.type.value, ttl_of(entry))
        for entry in inventory.entries
    }
    assert set(read) == set(wanted)
    for key, (type_, ttl) in wanted.items():
        assert type_ in ("*", read[key][0]), key
        assert ttl in ("*", read[key][1]), key


@pytest.mark.parametrize("name", names())
def test_every_fact_of_a_sample_has_a_line_of_the_document(name):
    lines = document(name).read_text(encoding="utf-8").split("\n")
    for entry in read_document(document(name), name).entries:
        facts = [entry.type, entry.ttl, entry.purpose, entry.payload, entry.personal, *entry.writers, *entry.readers]
        for source in [*entry.sources, *(fact.source for fact in facts if fact is not None)]:
            assert source is not None and source.file == name and 1 <= source.line <= len(lines), entry.pattern
        assert any(
            entry.spelling.split("|")[0][:12] in lines[source.line - 1].replace("&lt;", "<").replace("&gt;", ">")
            or len(entry.spelling) < 3
            or name.startswith("13")
            for source in entry.sources
        ), entry


def test_two_readings_are_equal():
    path = document("02_game_ko")
    assert read_document(path, "x") == read_document(path.read_text(encoding="utf-8"), "x")


def seed(number: str) -> Path:
    return next(SEEDS.glob(f"{number}*"))


@needs_seeds
def test_all_patterns_of_the_seed_documents_are_found_and_no_others():
    """Compared by kind and shape: spelt as a pattern, names of variables left out."""
    rows = list(csv.DictReader((ROOT / "tests/data/seed_keys.tsv").open(encoding="utf-8"), delimiter="\t"))
    for number in ("000", "001", "002", "003", "004"):
        wanted = {(row["kind"], shape(normalise(row["pattern"]).pattern)) for row in rows if number in row["seeds"]}
        read = {(entry.kind, shape(entry.pattern)) for entry in read_document(seed(number), number).entries}
        assert wanted - read == set(), number
        assert {kind for kind, _ in read - wanted} <= {"opaque"}, read - wanted


def right(wanted: str, read: str) -> bool:
    """``some`` stands for an end that the text does not put in numbers."""
    return wanted == read or (wanted == "some" and read.split()[0] in {"some", "until"} and " " not in read)


@needs_seeds
def test_types_and_expiries_that_the_seed_documents_state_in_words():
    rows = list(csv.DictReader((Path(__file__).parent / "seed_answers.tsv").open(encoding="utf-8"), delimiter="\t"))
    assert len(rows) > 150
    entries = {
        number: {entry.pattern: entry for entry in read_document(seed(number), number).entries}
        for number in ("000", "001", "002")
    }
    types = [
        row["pattern"] for row in rows if entries[row["document"]][row["pattern"]].server_type != row["server_type"]
    ]
    ttls = [row["pattern"] for row in rows if not right(row["ttl"], ttl_of(entries[row["document"]][row["pattern"]]))]
    stated = sum(row["ttl"] != "-" for row in rows)
    assert len(types) <= 0.05 * len(rows), types
    assert len(ttls) <= 0.05 * stated, ttls


@needs_seeds
def test_types_and_expiries_of_the_seed_tables():
    rows = [
        row
        for row in csv.DictReader((ROOT / "tests/data/seed_keys.tsv").open(encoding="utf-8"), delimiter="\t")
        if row["type"]
    ]
    types = {
        "string": "string",
        "int": "string",
        "list": "list",
        "hash": "hash",
        "zset": "zset",
        "sortedset": "zset",
        "set": "set",
        "geo": "zset",
    }
    entries = {
        shape(entry.pattern): entry
        for number in ("003", "004")
        for entry in read_document(seed(number), number).entries
    }
    wrong = []
    for row in rows:
        entry = entries[shape(normalise(row["pattern"]).pattern)]
        name = row["type"].strip('"').split()[0].split("(")[0].lower()
        if (entry.kind != "channel") if name.startswith("pub") else entry.server_type != types[name]:
            wrong.append((row["pattern"], row["type"]))
        if row["ttl"] not in ("", "n/a") and entry.ttl is None:
            wrong.append((row["pattern"], row["ttl"]))
    assert not wrong
    assert ttl_of(entries["register_device:{}"]) == "exactly 2592000" and ttl_of(entries["events:geo"]) == "none"
    assert entries["user:friends:{}"].ttl.value.words == "friendListCacheTTL"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is not text"),
        (bytes(range(256)) * 50, "is not text"),
        (bytes(range(128, 256)) * 50, "is not text"),
    ],
)
def test_what_is_no_document_is_refused_in_one_line(tmp_path, raw, says):
    path = tmp_path / "keys.md"
    path.write_bytes(raw)
    with pytest.raises(NotADocument, match=says) as raised:
        read_document(path)
    assert "keys.md" in str(raised.value) and "\n" not in str(raised.value)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    for path in (tmp_path / "nothing.md", tmp_path):
        with pytest.raises(NotADocument, match="cannot be read"):
            read_document(path)


def test_bytes_that_are_not_valid_are_replaced_and_noted(tmp_path):
    path = tmp_path / "keys.md"
    path.write_bytes("- `user:{id}` Hash für Nutzer\n".encode("latin-1"))
    inventory = read_document(path, "keys.md")
    assert [entry.pattern for entry in inventory.entries] == ["user:{id}"]
    assert "not valid text" in inventory.notes[0].says and inventory.notes[0].source.line == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_marked_encodings_are_read(tmp_path, encoding):
    path = tmp_path / "keys.md"
    path.write_bytes("- `user:{id}` a hash\r\n- `order:{id}` a list\r\n".encode(encoding))
    assert [entry.pattern for entry in read_document(path).entries] == ["user:{id}", "order:{id}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: b"".join(b"| `k%d:{id}` | hash | %d s |\n" % (number, number) for number in range(1_500_000)),
        lambda: b"a:b " * 12_500_000,
        lambda: b"Words about `a:{b}` that expires after 5 minutes.\n\n" * 1_000_000,
    ],
    ids=["table", "one line", "prose"],
)
def test_fifty_megabytes_are_read_in_part_and_soon(tmp_path, make):
    path = tmp_path / "keys.md"
    path.write_bytes((b"| Key | Type | TTL |\n|---|---|---|\n" + make())[:50_000_000])
    started = time.process_time()
    inventory = read_document(path)
    assert time.process_time() - started < 60
    assert "only the first 1 MB" in inventory.partial
    path.unlink()


def test_a_text_without_keys_says_so():
    inventory = read_document("# Notes\n\nNothing here. See `docs/x.md`, 12:30.\n", "x")
    assert inventory.entries == () and "no key was found" in inventory.notes[0].says


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("# a\n\n- `b`", "x", "markdown"),
        ("<html><body>", "x", "html"),
        ("= T\n\n|===\n|a|b\n|===\n", "x", "asciidoc"),
        ("h1. T\n\n||a||b||\n|1|2|\n", "x", "wiki"),
        ("T\n====\n\n``a`` and ``b``\n\n.. note:: x\n", "x", "rst"),
        ("key,type,ttl\na:{b},hash,1h\nc:{d},set,2h\n", "x", "csv"),
        ("key\ttype\na:{b}\thash\n", "x", "tsv"),
        ("anything", "keys.rst", "rst"),
        ("keys: []", "keys.yml", "records"),
    ],
)
def test_the_kind_of_a_document_is_told_from_its_text_or_name(text, name, kind):
    assert kind_of(text, name) == kind


def test_disagreement_between_two_places_is_noted():
    text = (
        "| Key | Type | TTL |\n|---|---|---|\n| `a:{b}` | hash | 5 min |\n\n"
        "| Key | Type | TTL |\n|---|---|---|\n| `a:{c}` | set | 1 h |\n"
    )
    inventory = read_document(text, "x")
    assert len(inventory.entries) == 1
    assert any("its type is hash on line 3, set on line 7" in note.says for note in inventory.notes)
    assert any("its TTL is 300 s on line 3, 3600 s on line 7" in note.says for note in inventory.notes)


def test_what_is_guessed_is_marked():
    (entry,) = read_document("| Key | Type | TTL |\n|---|---|---|\n| `a:{b}` | Set / Hash | — |\n", "x").entries
    assert entry.type.certainty is Certainty.GUESSED and entry.ttl.certainty is Certainty.GUESSED


PIECES = st.sampled_from(
    [
        "a:{b}",
        "`a:{b}`",
        "`c`",
        "- ",
        "  - ",
        "* ",
        "| ",
        " |",
        "|---|---|",
        "# ",
        "## Pub/Sub",
        "```",
        "\n",
        "\n\n",
        "Key",
        "TTL",
        "Type",
        "1 h",
        "hash",
        "goes to a ",
        "set",
        "**",
        ":",
        "…:x",
        "All keys start with `p:`.",
        "<td>",
        "</table>",
        "<ul><li>",
        "==== ===",
        "+--+--+",
        "|===",
        "||",
        "{|",
        "├── ",
        "SET a:1 x EX 5",
        'KEY = "a:%s"',
        "用户",
        "만료 5분",
        "same as above",
        "\t",
        " ",
        "expires after ",
        ".",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PIECES | st.text(max_size=6), max_size=60).map("".join),
    st.sampled_from(["x.md", "x.rst", "x.adoc", "x.wiki", "x.html", "x.csv"]),
)
def test_text_never_fails_and_facts_have_lines(text, name):
    try:
        inventory = read_document(text, name)
    except NotADocument:
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").count("\n") + 1
    assert all(1 <= source.line <= lines for entry in inventory.entries for source in entry.sources)


def test_a_paragraph_without_end_is_read_in_bounded_time():
    text = "\n".join(f"lorem `a{number % 50}:x{number}:<b>` dolor" for number in range(4000))
    inventory = read_document(text, "endless.md")
    assert len(inventory.entries) == 200
    assert any("only the first 200 keys in sentences" in note.says for note in inventory.notes)
