"""Who it is for sure, and what only looks like them."""

import pytest

from keystead.custody.certainty import Certainty
from keystead.custody.person import Person
from keystead.custody.reading import Part
from keystead.inventory import Entry, Fact

NUMBER = Person(["1234"])


def value(raw: bytes) -> Part:
    return Part("value", b"", (raw,))


@pytest.mark.parametrize(("pattern", "variable", "theirs"), [
    ("user:{id}", "id", True), ("users:{id}:cart", "id", True), ("profile:{id}", "id", True),
    ("x:{user_id}", "user_id", True),
    ("order:{id}", "id", False), ("order:{order_id}", "order_id", False), ("user:{order_id}", "order_id", False),
])
def test_number_in_a_name_is_theirs_where_the_variable_stands_for_people(
    pattern: str, variable: str, theirs: bool
) -> None:
    entry = Entry(pattern, personal=Fact(True))
    key = pattern.replace(f"{{{variable}}}", "1234").encode()
    assert Certainty(NUMBER, entry, {variable: "1234"}).names_them(key, True) is theirs
    assert Certainty(Person(["u-1234"]), entry, {variable: "u-1234"}).names_them(b"x", True), "a name is no count"


@pytest.mark.parametrize(("text", "sure"), [
    (b"1234", True), (b'"1234"', True), (b'{"user_id": 1234}', True), (b'{"ownerUserId":"1234"}', True),
    (b'{"sum": 1234}', False), (b'{"user_id": 1234.5}', False), (b"sold 1234 times", False),
])
def test_number_in_a_value_is_theirs_where_it_says_so(text: bytes, sure: bool) -> None:
    assert Certainty(NUMBER, Entry("session:{token}"), {}).is_sure(value(text), "string") is sure
    assert not Certainty(NUMBER, Entry("n:{x}", type=Fact("integer")), {}).is_sure(value(b"1234"), "string")


def test_score_is_never_a_person() -> None:
    certainty = Certainty(NUMBER, Entry("ranking"), {})
    assert not certainty.is_sure(Part("member", b"99", (b"99", b"1234")), "zset")
    assert certainty.is_sure(Part("member", b"1234", (b"1234", b"5")), "zset")


def test_marked_field_is_believed() -> None:
    part = Part("field", b"boss", (b"boss", b"1234"))
    assert not Certainty(NUMBER, Entry("h"), {}).is_sure(part, "hash")
    assert Certainty(NUMBER, Entry("h", personal=Fact(True, words="field boss, field x")), {}).is_sure(part, "hash")
