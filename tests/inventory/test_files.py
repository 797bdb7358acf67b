"""An inventory comes back from its file exactly, and a file with a mistake is refused with the line."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from keystead.errors import Invalid
from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Note, Rule, Source
from keystead.inventory.files import read_inventory, write_inventory

from .inventories import INVENTORIES

LINE = Source("redis-keys.md", 12)
SAMPLE = Inventory(
    "redis-keys.md",
    (
        Entry(
            "sms:pending:{sid}", "sms:pending:<SID>", type=Fact("hash", Certainty.IMPLIED, LINE, "fields of the text"),
            ttl=Fact(Expiry(Rule.AT_MOST, 1800), Certainty.STATED, Source("redis-keys.md", 14), "30 minutes"),
            purpose=Fact("a text whose fate is unknown", source=LINE), writers=(
                Fact("sms.sender", source=LINE), Fact("sms.sweep", Certainty.GUESSED, Source("sweep.go", 7))),
            personal=Fact(True, Certainty.GUESSED, LINE), variables=(("sid", "word"),), section=("Texts",),
            sources=(LINE,), extra=(("Owner", "team \"blue\""),),
        ),
        Entry("news:{id}", "news:{id}", kind="channel", sources=(Source("redis-keys.md", 20),), section=("Texts",)),
        Entry("bull:*", kind="opaque"),
    ),
    notes=(Note("two types are given", Source("redis-keys.md", 13)),),
    sections=((("Texts",), "All about texts.\nTwo lines."),),
)
TOML = '''\
[inventory]
name = "redis-keys.md"

[[section]]
path = ["Texts"]
text = """
All about texts.
Two lines."""

[[key]]
pattern = "sms:pending:{sid}"
spelling = "sms:pending:<SID>"
section = ["Texts"]
type = "hash"
ttl = "at most 30 min"
purpose = "a text whose fate is unknown"
writers = ["sms.sender", { name = "sms.sweep", at = "sweep.go:7", how = "guessed" }]
personal = true
variables = { sid = "word" }
extra = { Owner = "team \\"blue\\"" }
implied = ["type"]
guessed = ["personal"]
words = { type = "fields of the text", ttl = "30 minutes" }
at = { ttl = "redis-keys.md:14" }
source = "redis-keys.md:12"

[[channel]]
pattern = "news:{id}"
section = ["Texts"]
source = "redis-keys.md:20"

[[opaque]]
pattern = "bull:*"

[[note]]
says = "two types are given"
source = "redis-keys.md:13"
'''


def test_toml_reads_like_the_document_it_replaces() -> None:
    assert write_inventory(SAMPLE) == TOML


@pytest.mark.parametrize("format", ["toml", "yaml", "json"])
def test_sample_comes_back(format: str) -> None:
    assert read_inventory(write_inventory(SAMPLE, format), format=format) == SAMPLE


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES)
def test_every_inventory_comes_back(inventory: Inventory) -> None:
    for format in ("toml", "yaml", "json"):
        text = write_inventory(inventory, format)
        assert read_inventory(text, format=format) == inventory
        assert write_inventory(read_inventory(text, format=format), format) == text


def test_a_person_may_write_little() -> None:
    inventory = read_inventory('''
# what we keep in Redis
[[key]]
pattern = "user:{id}"      # a profile
type = "Hash"
ttl = 3600
writers = "billing"

[[keys]]
pattern = "cache:*"
type = "sorted set"
ttl = "30m, refreshed on read"

[valkey]
url = "redis://localhost"
''', name="keystead.toml")

    first, second = inventory.entries
    assert (first.pattern, first.type, first.ttl) == (
        "user:{id}", Fact("hash"), Fact(Expiry(Rule.EXACTLY, 3600)))
    assert first.writers == (Fact("billing"),)
    assert (second.type, second.ttl) == (Fact("zset"), Fact(Expiry(Rule.SLIDING, 1800)))
    assert inventory.name == "keystead.toml"


def test_yaml_may_list_channels_apart() -> None:
    inventory = read_inventory("keys:\n- pattern: a:{id}\n  ttl: 10 min\nchannels:\n- pattern: b\n", name="x.yml")

    assert [(entry.kind, entry.pattern) for entry in inventory.entries] == [("key", "a:{id}"), ("channel", "b")]


@pytest.mark.parametrize(("text", "says"), [
    ("[[key]]\npattern = \"a\"\npurpos = \"b\"\n", "inventory.toml:1: there is no field purpos; did you mean purpose?"),
    ("\n[[key]]\ntype = \"hash\"\n", "inventory.toml:2: an entry needs a pattern"),
    ("[[key]]\npattern = \"a\"\n\n[[key]]\npattern = \"b\"\ntype = \"hahs\"\n",
     "inventory.toml:4: b: type 'hahs' is not known; did you mean hash?"),
    ("[[key]]\npattern = \"a\"\nttl = \"soonish\"\n", "inventory.toml:1: a: ttl 'soonish' is not understood; write it"),
    ("[[key]]\npattern = \"a\"\nttl = -5\n", "inventory.toml:1: a: ttl -5 is no number of seconds"),
    ("[[key]]\npattern = \"a\"\nttl = nan\n", "inventory.toml:1: a: ttl nan is no number of seconds"),
    ("[[key]]\npattern = \"a\"\nguessed = [\"ttl\"]\n", "inventory.toml:1: a: something is said of ttl, which"),
    ("[[key]]\npattern = a\n", "inventory.toml:2: invalid value"),
    ("[[key]]\npattern = \"a", "inventory.toml:2: "),
    ("[key]\npattern = \"a\"\n", "inventory.toml: key must be written as [[key]]"),
    ("[valkey]\nurl = \"x\"\n", "inventory.toml: there are no [[key]] tables; is it an inventory?"),
    ("[[key]]\npattern = 7\n", "inventory.toml:1: pattern must be text, not a number; write it in quotes"),
    ("[[key]]\npattern = \"a\"\npersonal = \"yes\"\n", "inventory.toml:1: a: personal must be true or false"),
    ("[[key]]\npattern = \"a\"\nwriters = [1]\n", "inventory.toml:1: a: writers is a list of names"),
    ("[[key]]\npattern = \"a\"\nkind = \"topic\"\n", "inventory.toml:1: a: the kind 'topic' is none of key, channel"),
    ("keys:\n- pattern: a\n- pattern: {id}:x\n", "inventory.yaml:3: "),
    ("keys:\n- pattern: a\n- patern: b\n", "inventory.yaml:3: there is no field patern; did you mean pattern?"),
    ("keys: 7\n", "inventory.yaml:1: keys must be a list of tables"),
    ("just words", "inventory.yaml: there is no list named keys; is it an inventory?"),
    ("", "inventory.yaml: there is no list named keys; is it an inventory?"),
    ("keys: !!python/object:os.system [x]\n", "inventory.yaml:1: could not determine a constructor"),
    ('{"keys": [', "inventory.json:1: "),
])
def test_mistake_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_inventory(text)
    assert str(refused.value).startswith(says), str(refused.value)
    assert "\n" not in str(refused.value)


def test_header_within_a_text_is_no_table() -> None:
    text = '[[key]]\npattern = "a"\npurpose = """\n[[key]]\n\\"""[[key]]"""\n'
    text += '[[channel]]\npattern = "c"\n[[key]]\npattern="b"'

    assert [entry.pattern for entry in read_inventory(text).entries] == ["a", "c", "b"]


def test_files_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path) -> None:
    binary, missing = tmp_path / "a.toml", tmp_path / "b.toml"
    binary.write_bytes(b"\x89PNG\xff\x00")

    with pytest.raises(Invalid, match="is not UTF-8 text"):
        read_inventory(binary)
    with pytest.raises(Invalid, match="cannot be read: No such file"):
        read_inventory(missing)
    with (tmp_path / "c.toml").open("wb") as huge:
        huge.truncate(50 * 1024 * 1024)
    with pytest.raises(Invalid, match="larger than 32 MiB"):
        read_inventory(tmp_path / "c.toml")


def test_file_with_a_mark_of_its_encoding_and_windows_line_ends_is_read(tmp_path: Path) -> None:
    (tmp_path / "k.toml").write_bytes(b"\xef\xbb\xbf" + TOML.replace("\n", "\r\n").encode())

    assert read_inventory(tmp_path / "k.toml") == SAMPLE


def test_name_of_a_file_is_taken_for_the_file(tmp_path: Path) -> None:
    (tmp_path / "k.toml").write_text(TOML)

    assert read_inventory(str(tmp_path / "k.toml")) == SAMPLE
    with pytest.raises(Invalid, match=r"nowhere\.yml cannot be read"):
        read_inventory("nowhere.yml")


def test_thousands_of_entries_are_read_soon() -> None:
    inventory = Inventory("many", SAMPLE.entries * 1500)
    started = time.monotonic()

    assert read_inventory(write_inventory(inventory)) == inventory
    assert time.monotonic() - started < 60


def test_file_that_the_documentation_shows_is_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "keys-for-any-redis.md").read_text(encoding="utf-8")
    [entry] = read_inventory(page.partition("```toml\n")[2].partition("```")[0], name="keystead.toml").entries

    assert entry.ttl is not None and entry.ttl.value == Expiry(Rule.SLIDING, 1800)
    assert entry.writers[1] == Fact("mobile", Certainty.GUESSED, Source("api/login.go", 31))
