"""However many names come, the tree stays small and counts them all."""

import random

from keystead.inventory.learning.tree import MOST_EXAMPLES, MOST_GROUPS, MOST_WORDS, Group, Tree, groups, signature


def planted(*keys: str, **options: int) -> Tree:
    tree = Tree(**options)
    for key in keys:
        tree.add(key.encode(), "string", -1, 10)
    return tree


def total(tree: Tree) -> int:
    return sum(group.keys for _, group in groups(tree.root))


def test_group_keeps_what_was_seen() -> None:
    group = Group()
    group.add(b"a", "hash", 5000, 70)
    group.add(b"b", "hash", 1000, 30)
    other = Group()
    other.add(b"c", "set", -1, 0)
    group.absorb(other)
    assert (group.keys, group.memory_bytes, group.weighed, group.largest_bytes) == (3, 100, 2, 70)
    assert (group.without_expiry, group.with_expiry, group.shortest_ms, group.longest_ms) == (1, 2, 1000, 5000)
    assert group.types == {"hash": 2, "set": 1}
    assert [key for key, _, _ in group.examples] == [b"a", b"b", b"c"]


def test_examples_stay_few() -> None:
    tree = planted(*(f"user:{number}" for number in range(1000)))
    ((_, group),) = groups(tree.root)
    assert group.keys == 1000 and len(group.examples) == MOST_EXAMPLES


def test_too_many_words_at_one_place_become_one() -> None:
    tree = planted(*(f"page:{a}{b}x" for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"))
    assert len(list(groups(tree.root))) == 1 and total(tree) == 676 > MOST_WORDS


def test_one_off_names_do_not_fill_the_memory() -> None:
    rng = random.Random(1)
    tree = planted(*("".join(rng.choices("abcxyz:_-/.0", k=20)) for _ in range(30_000)), most_groups=500, most_words=50)
    assert tree.crowded
    assert len(list(groups(tree.root))) == tree.groups <= 500
    assert total(tree) == tree.keys == 30_000
    tree.finish()
    assert total(tree) == 30_000


def test_crowd_beside_it_leaves_a_pattern_alone() -> None:
    rng = random.Random(2)
    names = [f"junk:{rng.randbytes(4).hex()}xg:{''.join(rng.choices('ghijk', k=9))}" for _ in range(8000)]
    tree = planted(*names, *(f"user:{number}:cart" for number in range(50)))
    found = {"".join(path): group.keys for path, group in groups(tree.root)}
    assert found["user:\x00integer\x01:cart"] == 50
    assert tree.groups < MOST_GROUPS


def test_signature_is_blind_to_kinds_of_values() -> None:
    first, second = planted("7:cart", "7:orders:1"), planted("7:cart", "7:orders:550e8400-e29b-41d4-a716-446655440000")
    assert signature(first.root) == signature(second.root)
