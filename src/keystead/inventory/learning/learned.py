"""The patterns of a tree of keys."""

from collections.abc import Iterator

from keystead.inventory.learning.merging import merge
from keystead.inventory.learning.naming import Named, name
from keystead.inventory.learning.tree import Group, Node, Tree

Learned = list[tuple[Named, Group]]
_Path = tuple[tuple[str, Node], ...]


def learned_from(tree: Tree) -> Learned:
    """The patterns of a tree, in the order of their names. The tree is settled by this and should get no more keys."""
    tree.finish()
    merge(tree.root)
    found: dict[str, tuple[Named, Group]] = {}
    for path, group in _paths(tree.root, ()):
        named = name(path)
        if named.pattern in found:
            found[named.pattern][1].absorb(group)
        else:
            found[named.pattern] = named, group
    return sorted(found.values(), key=lambda each: each[0].pattern)


def _paths(node: Node, path: _Path) -> Iterator[tuple[_Path, Group]]:
    if node.group is not None:
        yield path, node.group
    for token, child in node.children.items():
        yield from _paths(child, (*path, (token, child)))
