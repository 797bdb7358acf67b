from keystead.inventory.documents import read_document
from keystead.inventory.models import Certainty


def read(text):
    return {entry.pattern: entry for entry in read_document(text, "x").entries}


def test_one_entry_for_each_shape_with_the_better_names():
    entries = read("- `a:*` things\n- `a:{user_id}` a hash\n- `b:{x}` a set\n")
    assert set(entries) == {"a:{user_id}", "b:{x}"} and len(entries["a:{user_id}"].sources) == 2


def test_facts_know_their_lines():
    entry = read("# K\n\n- `a:{b}` goes to a hash of things\n  that somebody left. Expires\n  after 5 minutes.\n")[
        "a:{b}"
    ]
    assert (entry.type.source.line, entry.ttl.source.line) == (3, 4)


def test_namespaces_of_a_library_and_personal_variables():
    entries = read("- `bull:*` is managed by the library\n- `otp:{phone}` a string\n- `x:{id}` a hash\n")
    assert entries["bull:{rest}"].kind == "opaque" and entries["otp:{phone}"].personal.certainty is Certainty.IMPLIED
