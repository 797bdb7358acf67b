"""A live key is told back to its declaration, in both layouts; what nobody declared is told apart."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keystead.errors import Ambiguous, DeclarationError
from keystead.keys import (
    Channel,
    ChannelPattern,
    Keyspace,
    Lane,
    Layout,
    OneOf,
    OpaqueNamespace,
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
REGISTRIES = {layout: Registry([EACH], layout) for layout in Layout}


def test_every_kind_is_covered() -> None:
    assert set(VALUES) == set(KINDS)


@pytest.mark.parametrize("layout", Layout)
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


class TestTags:
    def test_a_declaration_overrides_its_keyspace(self) -> None:
        keyspace = Keyspace("msg", tag="msg")
        assert string(keyspace, "a:{x}").at("1").name(Layout.TAGGED) == b"{msg}a:1"
        assert string(keyspace, "b:{x}", tag="other").at("1").name(Layout.TAGGED) == b"{other}b:1"
        assert string(Keyspace("room"), "a").at().name(Layout.TAGGED) == b"{room}a"

    def test_a_tag_is_computed_from_a_variable(self) -> None:
        keyspace = Keyspace("queues")
        queue = string(keyspace, "queue:{name}:items", tag="queue:{name}")
        registry = Registry([keyspace], Layout.TAGGED)
        assert queue.at("mail").name(Layout.TAGGED) == b"{queue:mail}queue:mail:items"
        assert registry.resolve(b"{queue:mail}queue:mail:items") is not None
        assert registry.resolve(b"{queue:post}queue:mail:items") is None
        assert registry.resolve(b"queue:mail:items") is None

    def test_a_closing_brace_cannot_break_a_computed_tag(self) -> None:
        queue = string(Keyspace("queues"), "queue:{name}", tag="queue:{name}")
        with pytest.raises(DeclarationError, match="closing brace"):
            queue.at("a}b")
        assert key_slot(queue.at("a{b").name(Layout.TAGGED)) == key_slot(b"queue:a{b")

    def test_a_lane_is_stable_and_spreads(self) -> None:
        keyspace = Keyspace("msg", tag=Lane("msg", "user_sub", lanes=16))
        inbox = string(keyspace, "inbox:{user_sub}")
        outbox = string(keyspace, "outbox:{user_sub}")
        assert inbox.at("user_1").name(Layout.TAGGED) == b"{msg:0}inbox:user_1"
        lanes = set()
        for number in range(400):
            names = [key.at(f"user_{number}").name(Layout.TAGGED) for key in (inbox, outbox)]
            assert key_slot(names[0]) == key_slot(names[1])
            lanes.add(names[0].partition(b"}")[0])
        assert len(lanes) == 16
        registry = Registry([keyspace], Layout.TAGGED)
        assert registry.resolve(b"{msg:0}inbox:user_1") is not None
        assert registry.resolve(b"{msg:8}inbox:user_1") is None

    @pytest.mark.parametrize("tag", ["", "a{b", "}", "{other}", Lane("x", "other")])
    def test_a_tag_that_cannot_be_is_refused(self, tag: object) -> None:
        keyspace = Keyspace("room")
        with pytest.raises(DeclarationError):
            string(keyspace, "a:{x}", tag=tag)
        assert keyspace.declarations == []

    def test_lanes_have_bounds(self) -> None:
        with pytest.raises(DeclarationError, match="lanes"):
            Lane("x", "y", lanes=0)


class TestAmbiguity:
    def test_both_names_and_an_example_are_in_the_message(self) -> None:
        one, other = Keyspace("one"), Keyspace("other")
        string(one, "a:{x}:c")
        string(other, "a:b:{y}")
        with pytest.raises(Ambiguous) as caught:
            Registry([one, other])
        assert {caught.value.first, caught.value.second} == {"a:{x}:c (one)", "a:b:{y} (other)"}
        assert "a:{x}:c (one)" in str(caught.value) and "a:b:{y} (other)" in str(caught.value)
        assert "the key a:b:c," in str(caught.value)

    def test_the_same_pattern_twice(self) -> None:
        keyspace = Keyspace("one")
        string(keyspace, "a")
        string(keyspace, "a")
        with pytest.raises(Ambiguous):
            Registry([keyspace])

    def test_declaring_alone_does_nothing(self) -> None:
        keyspace = Keyspace("one")
        string(keyspace, "a:{x}")
        string(keyspace, "a:{y}")

    def test_a_key_and_a_channel_may_share_a_name(self) -> None:
        keyspace = Keyspace("one")
        string(keyspace, "a:{x}")
        Channel(keyspace, "a:{y}", bytes, purpose="tests")
        registry = Registry([keyspace])
        assert registry.resolve(b"a:1").arguments == {"x": "1"}  # type: ignore[union-attr]
        assert registry.resolve_channel(b"a:1").arguments == {"y": "1"}  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("patterns", "key", "owner"),
        [
            (["a:{x:integer}:{z}", "a:{y}:lit"], "a:5:lit", "a:{y}:lit"),
            (["a:{x:integer}:lit", "a:{y}:{z}"], "a:5:lit", "a:{x}:lit"),
            (["a:{rest}", "a:b-{rest}", "a:{x}"], "a:b-c", "a:b-{rest}"),
            (["a:{rest}", "a:{rest}:x", "a:b:{rest}:x"], "a:b:c:x", "a:b:{rest}:x"),
            (["a:{x}:{y}", "a:{rest}", "a:b:{y}"], "a:b:c", "a:b:{y}"),
            (["a:{x}:{y}", "a:{rest}", "a:b:{y}"], "a:b:c:d", "a:{rest}"),
            (["a:{x}:{y}:e", "a:b:c:d"], "a:b:c:e", "a:{x}:{y}:e"),
        ],
    )
    @pytest.mark.parametrize("turn", [False, True])
    def test_the_more_literal_owner_is_found_whatever_the_order(
        self, patterns: list[str], key: str, owner: str, turn: bool
    ) -> None:
        keyspace = Keyspace("one")
        for pattern in reversed(patterns) if turn else patterns:
            string(keyspace, pattern)
        match = Registry([keyspace]).resolve(key.encode())
        assert match is not None and match.declaration.pattern == owner

    def test_the_winner_agrees_with_the_rule_on_random_registries(self) -> None:
        """Against a plain model: of all patterns that match a key, the one found is beaten by none of the others."""
        from keystead.keys.overlap import overlap

        rng = random.Random(8)
        segments = ["a", "b", "{v}", "{v:integer}", "{v:b|c}", "a-{v}", "{v:text}"]
        built = 0
        for _ in range(600):
            keyspace = Keyspace("random")
            for number in range(rng.randint(2, 4)):
                chosen = [rng.choice(segments) for _ in range(rng.randint(1, 3))]
                chosen = [part.replace("{v", f"{{v{number}_{place}") for place, part in enumerate(chosen)]
                try:
                    string(keyspace, ":".join(chosen))
                except DeclarationError:
                    continue
            try:
                registry = Registry([keyspace])
            except Ambiguous:
                continue
            built += 1
            for _ in range(20):
                key = ":".join(rng.choice(["a", "b", "c", "a-b", "5", "z"]) for _ in range(rng.randint(1, 4)))
                owners = [d for d in registry if d.template.match(key) is not None]
                match = registry.resolve(key.encode())
                if match is None:
                    assert owners == []
                    continue
                for other in owners:
                    if other is not match.declaration:
                        meeting = overlap(match.declaration.template, other.template)
                        assert meeting is not None and meeting.more_literal == 1, (key, match, other)
        assert built > 100


class TestOpaqueAndPatterns:
    def test_an_opaque_namespace_owns_what_nothing_else_does(self) -> None:
        keyspace = Keyspace("one")
        OpaqueNamespace(keyspace, "asynq:*", purpose="another program's queue")
        OpaqueNamespace(keyspace, "asynq:{default}:*", purpose="one queue of it")
        string(keyspace, "asynq:ours")
        for layout in Layout:
            registry = Registry([keyspace], layout)
            found = {key: registry.resolve(key) for key in (b"asynq:servers", b"asynq:{default}:p", b"asynq:\xff\x00")}
            assert [match.declaration.pattern for match in found.values() if match] == [
                "asynq:*", "asynq:{default}:*", "asynq:*",
            ]
            ours = string(keyspace, "asynq:ours").at().name(layout)
            keyspace.declarations.pop()
            assert registry.resolve(ours).declaration.pattern == "asynq:ours"  # type: ignore[union-attr]
            assert registry.resolve(b"asyn") is None

    @pytest.mark.parametrize("pattern", ["asynq", "*", "a*b*", "\n*"])
    def test_an_opaque_namespace_is_a_prefix_and_a_star(self, pattern: str) -> None:
        with pytest.raises(DeclarationError):
            OpaqueNamespace(Keyspace("one"), pattern, purpose="tests")

    def test_the_same_opaque_namespace_twice_is_ambiguous(self) -> None:
        keyspace = Keyspace("one")
        OpaqueNamespace(keyspace, "a:*", purpose="tests")
        OpaqueNamespace(keyspace, "a:*", purpose="tests")
        with pytest.raises(Ambiguous):
            Registry([keyspace])

    def test_a_channel_pattern_answers_for_channels_nothing_else_declares(self) -> None:
        keyspace = Keyspace("one")
        Channel(keyspace, "chat:event:{room}", bytes, purpose="tests")
        listening = ChannelPattern(keyspace, "chat:*", bytes, purpose="tests")
        registry = Registry([keyspace])
        assert registry.resolve_channel(b"chat:event:1").declaration.pattern == "chat:event:{room}"  # type: ignore[union-attr]
        assert registry.resolve_channel(b"chat:\xff").declaration is listening  # type: ignore[union-attr]
        assert listening.glob(Layout.PLAIN) == b"chat:*"
        with pytest.raises(DeclarationError, match="sharded"):
            listening.glob(Layout.TAGGED)


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
