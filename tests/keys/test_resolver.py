"""The more literal pattern owns a key; a tie is an error with both names."""

import random

import pytest

from keystead.errors import Ambiguous, DeclarationError
from keystead.keys import Channel, Keyspace, Registry, StringKey
from keystead.keys.overlap import overlap


def string(keyspace: Keyspace, pattern: str, **facts: object) -> StringKey[str]:
    return StringKey(keyspace, pattern, str, purpose="tests", **facts)  # type: ignore[arg-type]


def test_both_names_and_an_example_are_in_the_message() -> None:
    one, other = Keyspace("one"), Keyspace("other")
    string(one, "a:{x}:c")
    string(other, "a:b:{y}")
    with pytest.raises(Ambiguous) as caught:
        Registry([one, other])
    assert {caught.value.first, caught.value.second} == {"a:{x}:c (one)", "a:b:{y} (other)"}
    assert "a:{x}:c (one)" in str(caught.value) and "a:b:{y} (other)" in str(caught.value)
    assert "the key a:b:c," in str(caught.value)


def test_the_same_pattern_twice() -> None:
    keyspace = Keyspace("one")
    string(keyspace, "a")
    string(keyspace, "a")
    with pytest.raises(Ambiguous):
        Registry([keyspace])


def test_declaring_alone_does_nothing() -> None:
    keyspace = Keyspace("one")
    string(keyspace, "a:{x}")
    string(keyspace, "a:{y}")


def test_a_key_and_a_channel_may_share_a_name() -> None:
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
    patterns: list[str], key: str, owner: str, turn: bool
) -> None:
    keyspace = Keyspace("one")
    for pattern in reversed(patterns) if turn else patterns:
        string(keyspace, pattern)
    match = Registry([keyspace]).resolve(key.encode())
    assert match is not None and match.declaration.pattern == owner


def test_the_winner_agrees_with_the_rule_on_random_registries() -> None:
    """Against a plain model: of all patterns that match a key, the one found is beaten by none of the others."""
    rng = random.Random(8)
    segments = ["a", "b", "{v}", "{v:integer}", "{v:b|c}", "a-{v}", "{v:text}"]
    built = 0
    for _ in range(800):
        keyspace = Keyspace("random")
        for number in range(rng.randint(2, 6)):
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
