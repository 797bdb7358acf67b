"""Facts of a pattern reach each of its keys."""

from keystead.keys import Exactly, OnCorrupt, Personal
from keystead.patterns import PatternFacts
from keystead.patterns.facts import told

SAID: PatternFacts = {"purpose": "who came", "writers": ("room.door",), "tag": "door",
                      "personal": Personal(variable="sub", field="email")}


def test_facts_are_passed_on_with_what_is_special_to_the_key() -> None:
    passed = told(SAID, "the first day", scripts=("daysets/add.lua",), ttl=Exactly(5), dead=OnCorrupt.MISS)
    assert passed == {
        "purpose": "the first day: who came", "writers": ("room.door",), "readers": (), "tag": "door", "kinds": None,
        "personal": Personal(variable="sub", field="email"), "scripts": ("daysets/add.lua",), "ttl": Exactly(5),
        "dead_letter": OnCorrupt.MISS,
    }


def test_the_main_key_keeps_the_words_of_the_room() -> None:
    assert told(SAID)["purpose"] == "who came"


def test_a_key_without_payload_is_personal_only_by_its_name() -> None:
    assert told(SAID, personal=False)["personal"] == Personal(variable="sub")
    assert told({"purpose": "x", "personal": Personal(field="email")}, personal=False)["personal"] is False
    assert told({"purpose": "x", "personal": True}, personal=False)["personal"] is False
