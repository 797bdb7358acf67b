"""A live key is told back to its declaration, in both layouts; what nobody declared is told apart."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keystead.keys import (
    Keyspace,
    Layout,
    OneOf,
    Registry,
    StringKey,
    key_slot,
)
from keystead.keys.variables import KINDS

LETTER = st.characters(exclude_categories=("Cs", "Cc"))
PLAIN_LETTER = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=":")
TOKEN = st.text("abcXYZ0189_-.+/", min_size=1, max_size=12)
VALUES = {
    "word": st.text(PLAIN_LETTER, min_size=1),
    "text": st.text(LETTER, min_size=1),
    "integer": st.integers().map(str),
    "unix_date": st.integers(0, 999_999).map(str),
    "unix_month": st.integers(0, 99_999).map(str),
    "user": TOKEN,
    "email": st.tuples(TOKEN, TOKEN).map("@".join),
    "ip": st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(lambda a: str(a.ipv4_mapped or a)),
    "uuid": st.uuids().map(str),
    "sha256": st.text("0123456789abcdef", min_size=64, max_size=64),
    "timezone": st.sampled_from(["UTC", "America/Los_Angeles", "Etc/GMT+3", "America/Argentina/Ushuaia"]),
}


def string(keyspace: Keyspace, pattern: str, **facts: object) -> StringKey[str]:
    return StringKey(keyspace, pattern, str, purpose="tests", **facts)  # type: ignore[arg-type]


EACH = Keyspace("each", tag="each")
BY_KIND = {
    name: (string(EACH, f"alone-{name}:{{v:{name}}}"), string(EACH, f"between-{name}:{{v:{name}}}:{{day:unix_date}}:x"))
    for name in KINDS
}
REGISTRIES = {layout: Registry([EACH], layout) for layout in (Layout.PLAIN, Layout.TAGGED)}


def test_every_kind_is_covered() -> None:
    assert set(VALUES) == set(KINDS)


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED])
@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_argument_comes_back(kind: str, layout: Layout, data: st.DataObject) -> None:
    value, day = data.draw(VALUES[kind]), data.draw(st.integers(0, 999_999))
    alone, between = BY_KIND[kind]
    for reference, arguments in (
        (alone.at(value), {"v": value}),
        (between.at(value, day), {"v": value, "day": str(day)}),
    ):
        match = REGISTRIES[layout].resolve(reference.name(layout))
        assert match is not None
        assert (match.declaration, match.arguments) == (reference.declaration, arguments)


@given(raw=st.binary(max_size=40))
@example(raw=b"{")
@example(raw=b"{}")
@example(raw=b"{each}")
@example(raw=b"alone-word:\xff")
@example(raw=b"{each}alone-text:\xc3\x28")
@settings(deadline=None)
def test_any_bytes_resolve_without_a_crash_and_only_to_what_gives_them_again(raw: bytes) -> None:
    for layout, registry in REGISTRIES.items():
        for key in (raw, b"alone-word:" + raw, b"{each}alone-text:" + raw):
            match = registry.resolve(key)
            assert match is None or match.reference.name(layout) == key
            registry.resolve_channel(key)


@given(value=st.text(PLAIN_LETTER, min_size=1) | st.text("{}ab", min_size=1))
@example(value="{}")
@example(value="}{other}")
@settings(deadline=None)
def test_a_brace_in_a_value_does_not_move_the_key_to_another_slot(value: str) -> None:
    reference = BY_KIND["word"][0].at(value)
    assert key_slot(reference.name(Layout.TAGGED)) == key_slot(b"each")


def test_a_registry_can_be_asked_for_its_declarations() -> None:
    keyspace = Keyspace("one")
    first = string(keyspace, "a:{x}", kinds={"x": OneOf("b")})
    registry = Registry([keyspace])
    assert (list(registry), len(registry), registry.find("a:{x}"), registry.find("b")) == ([first], 1, first, None)
    assert registry.resolve_logical("a:b").declaration is first  # type: ignore[union-attr]
    assert registry.resolve_logical("a:c") is None


def test_resolving_is_fast_enough_for_millions_of_keys() -> None:
    """A loose floor, so that a busy machine does not fail it; the benchmark holds the real bar."""
    import time

    from .seed_patterns import seed_keyspace

    registry = Registry([seed_keyspace()])
    keys = [key for _, _, key in registry.sample_keys(random.Random(1), 20)]
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        for key in keys:
            registry.resolve(key)
        best = max(best, len(keys) / (time.perf_counter() - start))
    assert best > 60_000
