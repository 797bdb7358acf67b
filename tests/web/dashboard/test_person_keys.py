"""The card about somebody's keys; the whole way is walked in tests/web/test_questions.py."""

from datetime import UTC, datetime

from keystead.custody import Act, Erasure, Person
from keystead.web.dashboard.person_keys import erased_said, found_said, held_row, notes_html, receipt_html, what_goes
from keystead.web.person_erasure import PatternHeld, by_pattern

ACT = Act("cart:{user}", b"cart:ann", "hash", "deleted the key", 0, 120, "0" * 64)


def erasure(*acts: Act, **facts: object) -> Erasure:
    return Erasure(Person(["ann-17"]), "", datetime(2026, 3, 2, tzinfo=UTC), True, acts, **{  # type: ignore[arg-type]
        "leftovers": (), "searched_keys": 1000, "unreadable": {}, "notes": (), **facts})


def test_what_was_found_is_summed_up_by_pattern():
    found = erasure(ACT, ACT, Act("all:carts", b"all:carts", "set", "removed 2 members", 2, 30, "0" * 64))
    assert by_pattern(found) == [PatternHeld("cart:{user}", 2, 0, 240), PatternHeld("all:carts", 1, 2, 30)]
    assert found_said(found) == "3 keys of 2 patterns, 270 B; 1,000 keys searched"
    assert found_said(erasure()) == "Nothing, in 1,000 keys"
    assert held_row(by_pattern(found)[0]).cells[2] == "whole" and held_row(by_pattern(found)[1]).cells[2] == "2"


def test_the_question_says_what_goes():
    text = what_goes([PatternHeld(f"p{number}:{{user}}", 2, 0, 1) for number in range(10)])
    assert "20 keys of p0:{user}, p1:{user}" in text and "and 2 more patterns" in text and "cannot be undone" in text
    assert "no key that is known now" in what_goes([])


def test_the_outcome_is_told_with_what_it_could_not_do():
    assert erased_said(erasure(ACT)) == "Erased: rows, and 1 key; nothing is left"
    failed = Act("a", b"a", "hash", "failed: no", 0, 0, "")
    assert erased_said(erasure(ACT, failed)).endswith("; 1 failed")
    assert erased_said(erasure(partial="the server went away")) == "Not finished: the server went away"
    told = notes_html(erasure(unreadable={"a <module>": 3}, partial="too slow", notes=("other databases",)))
    assert "3 keys: a &lt;module&gt;" in told and "too slow" in told and "other databases" in told


def test_the_receipt_is_shown_as_text():
    shown = receipt_html({"a": "<b>"}, "erasure-1.json")
    assert "&lt;b&gt;" in shown and "erasure-1.json" in shown
