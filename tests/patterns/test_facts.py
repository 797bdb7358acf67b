"""Facts of a pattern reach each of its keys."""

from keystead.keys import Exactly, Personal
from keystead.keys.keyspace import Facts
from keystead.patterns.facts import passed_on


def test_facts_are_passed_on_with_what_is_special_to_the_key() -> None:
    said: Facts = {"purpose": "who came", "writers": ("room.door",), "personal": Personal(field="sub"),
                   "ttl": Exactly(5)}
    passed = passed_on(said, "the first day", ("daysets/add.lua",), personal=False)
    assert passed == {"purpose": "who came; the first day", "writers": ("room.door",), "personal": False,
                      "scripts": ("daysets/add.lua",), "ttl": Exactly(5)}
    assert said["purpose"] == "who came" and said["personal"] == Personal(field="sub")


def test_the_main_key_keeps_the_words_of_the_room() -> None:
    assert passed_on({"purpose": "who came", "personal": True}, "", ()) == {
        "purpose": "who came", "personal": True, "scripts": ()}
