from keystead.inventory.documents import read_document


def read(text):
    return {entry.pattern: entry for entry in read_document(text, "x").entries}


def test_points_below_a_key_are_facts_fields_or_keys_that_go_on_from_it():
    entries = read(
        "- `a:{b}`\n  - Type: hash\n  - TTL: 1 h\n  - Written by: api\n- `c:{d}` is a hash:\n  - `x`: one\n"
        "  - `y:{z}`: two\n"
        "- `e:{f}` keys\n  - `:lock` a lock\n  - `e:{f}:items` a list\n"
    )
    assert set(entries) == {"a:{b}", "c:{d}", "e:{f}", "e:{f}:lock", "e:{f}:items"}
    assert entries["a:{b}"].type.value == "hash" and entries["a:{b}"].writers[0].value == "api"
    assert entries["c:{d}"].payload.value == "fields x, y:{z}"


def test_single_words_are_keys_only_among_keys():
    assert "jobs" in read("- `jobs` a list\n- `jobs:{id}` a hash\n- `done:{id}` a set\n")
    assert read("- `used_memory` - memory\n- `evicted_keys` - evictions\n") == {}


def test_the_same_for_others():
    entries = read("- `a:{b}` a hash that expires after 5 min. The same applies to `c:{d}`.\n")
    assert set(entries) == {"a:{b}", "c:{d}"}


def test_groups_without_keys_of_their_own():
    assert set(read("- Sessions\n  - `session:{id}`: hash\n- Carts\n  - `cart:{id}`: hash\n")) == {
        "session:{id}",
        "cart:{id}",
    }


def test_records_in_points():
    entries = read("- Key: `a:{b}`\n- Type: hash\n- TTL: 5 min\n\n---\n\n- Key: `c:{d}`\n- Type: set\n")
    assert entries["a:{b}"].ttl.value.seconds == 300 and entries["c:{d}"].type.value == "set"
