"""Names of variables, and what looks like a key."""

import pytest

from keystead.inventory.code.expressions import Call, Index, Member, Name, Text
from keystead.inventory.code.shapes import Shape, Var, joined, literal, looks_like_a_key, name_of


@pytest.mark.parametrize(("expr", "name"), [
    (Name("userId"), "user_id"), (Member(Name("user"), "id"), "user_id"), (Member(Name("self"), "id"), "id"),
    (Call(Name("str"), [Name("order_id")]), "order_id"), (Call(Member(Name("x"), "getUserName"), []), "user_name"),
    (Index(Name("row"), Text("Email")), "email"), (Call(Name("md5"), [Name("url")]), "url_md5"),
    (Name("$redisKey"), "redis_key"),
])
def test_names(expr: object, name: str) -> None:
    assert name_of(expr) == name  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [
    "http://a.b", "10:30", "a: b", "color:red;", "localhost:6379", "sha256:abc", "node:fs", "urn:x:y", "%H:%M",
    "std::string",
    "/a:b", "hover:x", "SELECT a:b", "app.module:Class", "host:8080", "", "abc",
])
def test_what_is_no_key(text: str) -> None:
    assert not looks_like_a_key(literal(text))


def test_what_is_one() -> None:
    assert looks_like_a_key(Shape(("user:", Var("id"), ":cart")))
    assert looks_like_a_key(literal("app:config:global"))
    assert not looks_like_a_key(Shape((Var("host"), ":", Var("port"))))


def test_names_that_repeat_are_numbered_and_text_is_joined() -> None:
    assert Shape((Var("a"), ":", Var("a"))).pattern == "{a}:{a2}"
    assert joined([literal("a"), literal(":"), Shape((Var("b"),))]).parts == ("a:", Var("b"))
