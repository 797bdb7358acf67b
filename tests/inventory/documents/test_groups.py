from keystead.inventory.documents import read_document
from keystead.inventory.models import Certainty


def read(text):
    return {entry.pattern: entry for entry in read_document(text, "x").entries}


def test_a_type_that_is_said_to_be_that_of_another():
    entries = read("- `w:now` a list\n- `w:taken` has the same structure as `now`\n- `w:late` just like `w:now`\n")
    assert entries["w:taken"].type.value == entries["w:late"].type.value == "list"
    assert entries["w:taken"].type.certainty is Certainty.IMPLIED


def test_a_group_hands_down_what_it_says():
    entries = read("| Prefix | TTL |\n|---|---|\n| `ai:` | 10 min |\n\n```\nai:resp:{id}   # answer\n```\n")
    assert set(entries) == {"ai:resp:{id}"} and entries["ai:resp:{id}"].ttl.value.seconds == 600
    assert entries["ai:resp:{id}"].ttl.certainty is Certainty.IMPLIED


def test_concrete_keys_in_a_block_are_examples_of_what_is_described():
    entries = read("- `a:{b}` a hash\n- `c:{d}` a set\n\nWhat one request leaves:\n\n```\na:4711\nc:x\n```\n")
    assert entries["a:{b}"].examples == ("a:4711",) and "c:x" in entries
