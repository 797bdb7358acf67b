"""Undeclared names are grouped into patterns that a person would have written."""

import random
from uuid import UUID

import pytest

from keystead.keys import Inference


def inferred(*names: str) -> list[tuple[str, int]]:
    inference = Inference()
    for name in names:
        inference.add(name.encode())
    return [(each.pattern, each.keys) for each in inference.patterns()]


def test_identifiers_become_variables() -> None:
    carts = [f"user:{n}:cart:{UUID(int=n)}" for n in range(50)]
    assert inferred(*carts) == [("user:{int}:cart:{uuid}", 50)]


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["session:3f2a9c1b7d4e8f60", "session:aaaaaaaaaaaaaaa1"], "session:{hex}"),
        (["mail:a@b.example", "mail:c@d.example"], "mail:{email}"),
        (["block:10.0.0.1", "block:2001:db8::1"], "block:{ip}"),
        (["page_12", "page_13"], "page_{int}"),
        (["cache/items/12/x", "cache/items/7/x"], "cache/items/{int}/x"),
        (["tok:aB3dE6gH9jK2mN5pQ8rS", "tok:zY9xW6vU3tS0rQ7pO4nM"], "tok:{id}"),
        (["h:" + "ab" * 32, "h:" + "cd" * 32], "h:{sha256}"),
        (["t:1.5", "t:2.25"], "t:{number}"),
    ],
)
def test_classes(names: list[str], pattern: str) -> None:
    assert inferred(*names) == [(pattern, len(names))]


def test_few_words_stay_and_many_become_a_variable() -> None:
    assert inferred("job:mail", "job:push", "job:push") == [("job:push", 2), ("job:mail", 1)]
    many = [f"job:{a}{b}:state" for a in "abcdefgh" for b in "stuvwxyz"]
    assert inferred(*many) == [("job:{word}:state", 64)]


def test_many_features_at_the_front_are_still_told_apart() -> None:
    names = [f"{a}{b}:1" for a in "abcdefg" for b in "stuvwxyz"]
    assert len(inferred(*names)) == 56


def test_what_is_known_of_a_group() -> None:
    inference = Inference(most_examples=2)
    inference.add(b"a:1", type="string", ttl_seconds=None, memory_bytes=10)
    inference.add(b"a:2", type="hash", ttl_seconds=5, memory_bytes=20)
    inference.add(b"a:3", type="hash", ttl_seconds=None, memory_bytes=30)
    (group,) = inference.patterns()
    assert (group.keys, group.memory_bytes, group.types, group.without_ttl) == (3, 60, ("hash", "string"), 2)
    assert group.examples == ("a:1", "a:2")


def test_any_bytes_are_counted() -> None:
    inference = Inference()
    rng = random.Random(2)
    for _ in range(2000):
        inference.add(rng.randbytes(rng.randint(0, 30)))
    assert sum(group.keys for group in inference.patterns()) == 2000


@pytest.mark.parametrize("shape", ["words", "classes", "deep"])
def test_the_number_of_patterns_is_bounded_and_nothing_is_lost(shape: str) -> None:
    rng = random.Random(6)
    inference = Inference(most_patterns=100)

    def name() -> str:
        if shape == "words":
            return ":".join("".join(rng.choices("abcdef", k=4)) for _ in range(rng.randint(1, 5)))
        if shape == "classes":
            pieces = ["1", "a@b.c", "1.5", "ab" * 32, "0123456789abcdef", "x", "1.2.3.4"]
            return ":".join(rng.choice(pieces) for _ in range(rng.randint(1, 8)))
        return ":".join("x" for _ in range(rng.randint(1, 400)))

    for count in range(1, 5001):
        inference.add(name().encode(), memory_bytes=2)
        if count % 500 == 0:
            groups = inference.patterns()
            assert len(groups) <= 100
            assert sum(group.keys for group in groups) == count
            assert sum(group.memory_bytes for group in groups) == 2 * count
            assert len({group.pattern for group in groups}) == len(groups)
