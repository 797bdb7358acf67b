import pytest

from keystead.inventory.documents import read_document


def patterns(text):
    return [entry.pattern for entry in read_document(text, "x").entries]


TABLE = "| Key | Type |\n|---|---|\n| `user:{id}` | hash |\n"


@pytest.mark.parametrize(
    "sentence",
    [
        "All keys below are prefixed with `app:`.",
        "Key prefix: `app`",
        "All keys start with app: in every environment.",
        "所有 key 前缀为 `app:`。",
        "모든 키는 `app:` 로 시작한다.",
        "すべてのキーは `app:` で始まる。",
        "Alle Schlüssel beginnen mit `app:`.",
        "Todas las claves empiezan por `app:`.",
        "Toutes les clés commencent par `app:`.",
    ],
)
def test_a_prefix_that_is_stated_once(sentence):
    assert patterns(f"# Keys\n\n{sentence}\n\n{TABLE}") == ["app:user:{id}"]


def test_a_prefix_holds_in_its_section_and_is_added_to_the_one_around_it():
    one, two = TABLE, TABLE.replace("user", "x")
    text = f"# K\n\nAll keys start with `a:`.\n\n## One\n\nAll keys here are under `b:`.\n\n{one}\n## Two\n\n{two}"
    assert patterns(text) == ["a:b:user:{id}", "a:x:{id}"]


def test_headings_and_the_text_below_them():
    (entry,) = read_document(
        "## `cart:{id}` — basket\n\n- Type: hash\n- TTL: 1 day\n\n```json\n{}\n```\n", "x"
    ).entries
    assert entry.type.value == "hash" and entry.ttl.value.seconds == 86400 and entry.payload.value == "{}"
    assert entry.section == ("cart:{id} — basket",)


def test_sections_about_something_else():
    assert patterns("# Keys\n\n## Naming conventions\n\n- `{domain}:{id}` is how\n- `user:{id}` for instance\n") == []
    assert patterns("# Keys\n\n## Environment\n\n- `app:{x}` no\n") == []


def test_channels_by_their_section():
    (entry,) = read_document("# Keys\n\n## Pub/Sub channels\n\n- `news:{lang}` json of an article\n", "x").entries
    assert entry.kind == "channel" and entry.type is None


def test_facts_behind_a_list_are_about_all_its_points():
    entries = read_document("# K\n\n- `a:{x}` one\n- `b:{x}` two\n\n**TTL**: 30 days\n", "x").entries
    assert [entry.ttl.value.seconds for entry in entries] == [2592000, 2592000]


def test_paragraphs_that_are_records_or_begin_with_a_key():
    assert patterns("**Key pattern:** `a:{b}`\n\n**Type:** hash\n") == ["a:{b}"]
    assert patterns("# K\n\n`a:{b}` is a hash.\n\n`c:{d}` is a set.\n") == ["a:{b}", "c:{d}"]


def test_introductions_are_kept():
    assert read_document(f"# K\n\n## S\n\nAbout these.\n\n{TABLE}", "x").sections == ((("K", "S"), "About these."),)


def test_a_label_alone_is_about_the_block_behind_it():
    text = "## Limits\n\n**Key format**\n\n```\nrl:{ip}\n```\n\n**Value**\n- Integer counter\n\n**TTL**\n- `w` (60s)\n"
    (entry,) = read_document(text, "x").entries
    assert entry.type.value == "integer" and entry.ttl.value.seconds == 60


def test_a_prefix_from_a_section_on_naming_holds_everywhere():
    assert patterns(f"# K\n\n## Prefix\n\nAll keys start with `a:`.\n\n## Keys\n\n{TABLE}") == ["a:user:{id}"]


def test_words_in_capitals_are_placeholders_where_they_are_used_so():
    text = "# K\n\nName: `b:queue:QUEUE_NAME` - queue\nScore: time\n\nName: `b:jobs:JID`\n\nName: `stats/{s:ID}/TAG`\n"
    entries = read_document(text, "x").entries
    assert [entry.pattern for entry in entries] == ["b:queue:{queue_name}", "b:jobs:{jid}", "stats/{s:{id}}/{tag}"]
    assert entries[0].type.value == "zset"


def test_points_below_a_key_on_its_own_line_are_about_it():
    (entry,) = read_document("# K\n\n`conn:{id}`\n- Set of open sockets.\n- TTL-backed.\n", "x").entries
    assert entry.type.value == "set" and entry.ttl is not None
