"""The parsers."""

from keystead.inventory.code.grammars import SUFFIXES, captures, parse


def test_every_language_parses_anything() -> None:
    for language in set(SUFFIXES.values()) - {"lua"}:
        assert parse(language, b"\xff\xfe nonsense (((") is not None


def test_a_query_finds_nodes() -> None:
    found = captures("python", "(call) @call", parse("python", b"f(g(1))"))
    assert len(found["call"]) == 2
