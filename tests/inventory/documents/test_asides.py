from keystead.inventory.documents import read_document


def test_keys_in_sentences_are_noted_where_others_are_described():
    inventory = read_document(
        "# K\n\n- `a:{b}` a hash\n- `c:{d}` a set\n\nThe job moves it to `e:{f}` at night.\n", "x"
    )
    assert [entry.pattern for entry in inventory.entries] == ["a:{b}", "c:{d}"]
    assert [note.says for note in inventory.notes] == ["e:{f} is spoken of, and nothing here describes it"]


def test_keys_in_sentences_are_doubtful_entries_where_nothing_is_described():
    (entry,) = read_document(
        "# K\n\nWe keep a profile in `profile:{id}`, a hash that expires after 10 minutes.\n", "x"
    ).entries
    assert entry.type.value == "hash" and entry.ttl.value.seconds == 600 and "only spoken of" in entry.uncertain


def test_other_stores_and_conventions_are_no_keys():
    for text in (
        "Fills the local cache key `a:{b}` there.",
        "Prefer the form `domain:{id}` in names.",
        "The table `x:{y}` in SQL.",
    ):
        assert read_document(f"# K\n\n{text}\n", "x").entries == ()


def test_a_namespace_of_a_library_in_a_sentence():
    (entry,) = read_document("# K\n\nThe queues (asynq:* keys) are managed internally by the library.\n", "x").entries
    assert (entry.kind, entry.pattern) == ("opaque", "asynq:{rest}")


def test_an_aside_is_an_example_of_what_is_described():
    (entry,) = read_document("# K\n\n- `a:{b}` a hash\n\n**Example:**\n\n```\na:17\n```\n", "x").entries
    assert entry.examples == ("a:17",)
