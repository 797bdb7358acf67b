"""A few values tell what a pattern holds."""

import pytest

from keystead.survey.value_shapes import LARGEST_READ_BYTES, SAMPLE_BYTES, probe, shape


@pytest.mark.parametrize(
    ("type", "replies", "says"),
    [
        ("string", [b'{"id":1,"email":"a@b.example"}', b'{"id":2,"tags":[]}'],
         "json object: id integer, email email, tags array"),
        ("string", [b"1", b"2"], "integer"), ("string", [b"1.5"], "number"), ("string", [b"hello there"], "text"),
        ("string", [b"[1,2]"], "json array of integer"), ("string", [b"\xff\x00"], "binary"),
        ("string", [b"{broken"], "text"),
        ("string", [b'{"a":"' + b"x" * SAMPLE_BYTES], "json object, large"), ("string", [b"\x1f\x8b\x08"], "gzip"),
        ("string", ["ü".encode() * SAMPLE_BYTES][:1], "text"), ("string", [], ""), ("string", [Exception("no")], ""),
        ("hash", [[b"0", [b"name", b"Ann", b"age", b"7"]]], "fields: name text, age integer"),
        ("hash", [[b"0", {b"name": b"Ann"}]], "fields: name text"),
        ("list", [[b"1", b"2"]], "elements: integer"), ("set", [[]], ""),
        ("zset", [[b"550e8400-e29b-41d4-a716-446655440000"]], "elements: uuid"),
        ("stream", [[[b"1-0", [b"event", b"login"]]]], "fields: event text"), ("ReJSON-RL", [b"x"], ""),
    ],
)  # fmt: skip
def test_shape(type: str, replies: list[object], says: str) -> None:
    assert shape(type, replies) == says


def test_fields_that_are_data_are_not_listed() -> None:
    first = {f"{number:08x}a".encode(): b"1" for number in range(20)}
    second = {f"{number:08x}b".encode(): b"1" for number in range(20)}
    assert shape("hash", [[b"0", first], [b"0", second]]) == "fields: hex to integer"


def test_large_collection_is_not_read() -> None:
    assert probe(b"k", "list", LARGEST_READ_BYTES + 1) is None
    assert probe(b"k", "string", LARGEST_READ_BYTES * 10) == ("GETRANGE", b"k", 0, SAMPLE_BYTES - 1)
    assert probe(b"k", "none", 0) is None
