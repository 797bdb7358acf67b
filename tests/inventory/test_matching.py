"""A key finds the most literal of the patterns that fit it, whatever the patterns are."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.inventory import Entry, Inventory
from keystead.inventory.matching import Found, Matcher


def matcher(*patterns: str | Entry) -> Matcher:
    return Matcher(Inventory("test", tuple(Entry(each) if isinstance(each, str) else each for each in patterns)))


def found(matcher: Matcher, key: str | bytes) -> tuple[str, dict[str, str]] | None:
    answer = matcher.find(key.encode() if isinstance(key, str) else key)
    return None if answer is None or answer.loose else (answer.entry.pattern, answer.arguments)


def test_text_comes_before_text_with_variables_and_that_before_a_variable() -> None:
    keys = matcher("{anything}:{id}", "user:{id}", "user:u-{id}", "user:u-1")

    assert found(keys, "user:u-1") == ("user:u-1", {})
    assert found(keys, "user:u-2") == ("user:u-{id}", {"id": "2"})
    assert found(keys, "user:7") == ("user:{id}", {"id": "7"})
    assert found(keys, "other:7") == ("{anything}:{id}", {"anything": "other", "id": "7"})
    assert keys.find(b"unrelated") is None


def test_a_variable_holds_separators_only_if_nothing_else_fits() -> None:
    keys = matcher("user:{id}", "user:{id}:name")

    assert found(keys, "user:7:name") == ("user:{id}:name", {"id": "7"})
    loose = keys.find(b"user:7:draft")
    assert loose is not None and loose.loose
    assert (loose.entry.pattern, loose.arguments) == ("user:{id}", {"id": "7:draft"})
    more_literal = keys.find(b"user:7:8:name")
    assert more_literal is not None and more_literal.arguments == {"id": "7:8"}
    assert keys.find(b"user:") is None


def test_a_pattern_of_nothing_but_variables_never_fits_loosely() -> None:
    assert matcher("{key}").find(b"a:b") is None


def test_kinds_decide_between_patterns_but_shut_nothing_out() -> None:
    keys = matcher(Entry("a:{id}", variables=(("id", "integer"),)),
                   Entry("a:{address}", variables=(("address", "email"),)))

    assert found(keys, "a:7") == ("a:{id}", {"id": "7"})
    assert found(keys, "a:x@example.com") == ("a:{address}", {"address": "x@example.com"})
    assert found(keys, "a:neither") is not None
    listed = matcher(Entry("day:{name}", variables=(("name", "mon|tue"),)))
    assert found(listed, "day:mon") == ("day:{name}", {"name": "mon"})
    assert listed.find(b"day:sun") is None, "a list of values is whole"


@pytest.mark.parametrize(("pattern", "key", "arguments"), [
    ("api_ip:{ip}", "api_ip:203.0.113.7", {"ip": "203.0.113.7"}),
    ("api_ip:{ip}", "api_ip:2001:db8::7", {"ip": "2001:db8::7"}),
    ("api_ip:{ip}:count", "api_ip:2001:db8::7:count", {"ip": "2001:db8::7"}),
    ("visits:{day}:{rest}", "visits:1:a:b:c", {"day": "1", "rest": "a:b:c"}),
    ("cache:*", "cache:a:b", {}),
    ("app.user.{id}.posts", "app.user.42.posts", {"id": "42"}),
    ("files/{bucket}/{name}", "files/a/b.txt", {"bucket": "a", "name": "b.txt"}),
    ("{a}-{b}", "x-y-z", {"a": "x", "b": "y-z"}),
    ("friends:{user}:{user}", "friends:1:2", {"user": "1", "user_2": "2"}),
    ("{user:{id}}:feed", "{user:7}:feed", {"id": "7"}),
    ("會員:{編號}", "會員:7", {"編號": "7"}),
])
def test_pattern_gives_its_arguments(pattern: str, key: str, arguments: dict[str, str]) -> None:
    assert found(matcher(pattern, "unrelated:{x}"), key) == (pattern, arguments)


def test_dots_part_the_keys_of_patterns_that_use_dots() -> None:
    keys = matcher("app.user.{id}", "user:{id}", "{word}")

    assert found(keys, "app.user.42") == ("app.user.{id}", {"id": "42"})
    undocumented = keys.find(b"app.user.42.comments")
    assert undocumented is not None and (undocumented.loose or undocumented.entry.pattern == "{word}")


def test_namespace_of_a_library_takes_what_nothing_else_describes() -> None:
    keys = matcher(Entry("bull:*", kind="opaque"), Entry("bull:mail:{rest}", kind="opaque"), "bull:{queue}:events",
                   "bull{x}")

    assert found(keys, "bull:mail:events") == ("bull:{queue}:events", {"queue": "mail"})
    assert found(keys, "bull:mail:7:lock") == ("bull:mail:{rest}", {})
    assert found(keys, "bull:x:7:lock") == ("bull:*", {})


def test_name_behind_a_hash_tag_is_found() -> None:
    keys = matcher("sms:pending:{sid}", "sms:all")

    assert found(keys, "{msg:0}sms:pending:SM1") == ("sms:pending:{sid}", {"sid": "SM1"})
    assert found(keys, "{msg}sms:all") == ("sms:all", {})
    assert keys.find(b"{msg}") is None and keys.find(b"{}") is None and keys.find(b"{") is None


def test_channels_and_keys_are_apart() -> None:
    names = matcher(Entry("news:{id}", kind="channel"), "user:{id}")

    assert names.find(b"news:1") is None and names.find_channel(b"user:1") is None
    channel = names.find_channel(b"news:1")
    assert channel is not None and channel.arguments == {"id": "1"}


def test_bytes_that_are_no_text_are_shown_as_escapes() -> None:
    assert found(matcher("user:{id}"), b"user:\xff\x00") == ("user:{id}", {"id": "\\xff\x00"})


def test_huge_key_is_answered_at_once() -> None:
    keys = matcher("a:{x}-{y}-{z}!", "a:{x}:{y}:b", "log:{id}")
    key = b"a:" + b"x-" * 2_000_000

    answer = keys.find(key)
    assert answer is None or answer.loose
    assert found(keys, b"log:" + b"y" * 4_000_000) is not None


@pytest.mark.parametrize(("pattern", "kind", "glob"), [
    ("user:{id}:name", "key", b"user:*:name"), ("a[1]*{x}", "key", b"a\\[1\\]**"), ("plain", "key", b"plain"),
    ("bull:{rest}", "opaque", b"bull:*"), ("bull:*", "opaque", b"bull:*"),
])
def test_glob_fits_every_key_of_the_entry(pattern: str, kind: str, glob: bytes) -> None:
    assert matcher().glob(Entry(pattern, kind=kind)) == glob


def test_overlaps_are_pairs_that_neither_wins() -> None:
    keys = matcher("a:{x}:c", "a:b:{y}", "a:{x}:d", "jobs:{name}", "jobs:hot", "a:{z}:c", "b:u-{x}", "b:{x}-v")

    assert {(each.first.pattern, each.second.pattern, each.example) for each in keys.overlaps} == {
        ("a:{x}:c", "a:b:{y}", "a:b:c"), ("a:b:{y}", "a:{x}:d", "a:b:d"), ("a:{x}:c", "a:{z}:c", "a:1:c"),
        ("a:b:{y}", "a:{z}:c", "a:b:c"), ("b:u-{x}", "b:{x}-v", "b:u-1-v"),
    }


def test_kinds_that_share_no_value_do_not_overlap() -> None:
    first = Entry("a:{id}", variables=(("id", "integer"),))
    second = Entry("a:{other}", variables=(("other", "uuid"),))

    assert matcher(first, second).overlaps == ()


# A plain model: every pattern is tried, and the most literal one, place by place, is the answer.

def fits(pattern: list[str], key: list[str]) -> bool:
    return len(pattern) == len(key) and all(map(segment_fits, pattern, key))


def segment_fits(pattern: str, text: str) -> bool:
    head, hole, end = pattern.partition("{x}")
    if not hole:
        return pattern == text
    return len(text) > len(head) + len(end) and text.startswith(head) and text.endswith(end)


def literalness(segment: str) -> tuple[int, int]:
    text = segment.replace("{x}", "")
    return (0, 0) if text == segment else (1, -len(text)) if text else (2, 0)


SEGMENTS = st.sampled_from(["a", "b", "ab", "{x}", "a{x}", "{x}b", "ab{x}", "a{x}b", "{x}a"])
PATTERNS = st.lists(st.lists(SEGMENTS, min_size=1, max_size=4), min_size=1, max_size=12)
KEYS = st.lists(st.sampled_from(["a", "b", "ab", "aab", "abb", "ba", "c", ""]), min_size=1, max_size=5)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, KEYS)
def test_finds_what_a_plain_model_finds(patterns: list[list[str]], key: list[str]) -> None:
    keys = matcher(*(":".join(each) for each in patterns))
    answer: Found | None = keys.find(":".join(key).encode())
    fitting = [each for each in patterns if fits(each, key)]

    if not fitting:
        assert answer is None or answer.loose
        return
    assert answer is not None and not answer.loose
    best = min([literalness(segment) for segment in each] for each in fitting)
    chosen = answer.entry.pattern.split(":")
    assert fits(chosen, key)
    assert [literalness(segment) for segment in chosen] == best
    values = iter(answer.arguments.values())
    assert re.sub(r"\{x\}", lambda _: next(values), answer.entry.pattern) == ":".join(key)
    assert fnmatchcase(":".join(key), keys.glob(answer.entry).decode())


@settings(max_examples=150, deadline=None)
@given(PATTERNS)
def test_every_overlap_has_a_key_that_fits_both(patterns: list[list[str]]) -> None:
    for overlap in matcher(*(":".join(each) for each in patterns)).overlaps:
        for entry in (overlap.first, overlap.second):
            assert fits(entry.pattern.split(":"), overlap.example.split(":"))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("ab:{}x*./|\\[", max_size=12), max_size=6), st.binary(max_size=12))
def test_no_pattern_and_no_key_makes_it_fail(patterns: list[str], key: bytes) -> None:
    keys = matcher(*patterns)
    for raw in (key, *(pattern.encode() for pattern in patterns)):
        keys.find(raw)
        keys.find_channel(raw)
    assert keys.overlaps is not None
