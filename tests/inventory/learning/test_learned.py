from keystead.inventory.learning import Tree, learned_from


def test_patterns_come_in_the_order_of_their_names_with_what_was_seen() -> None:
    tree = Tree()
    for number in range(20):
        tree.add(b"user:%d" % number, "hash", -1, 10)
        tree.add(b"cart:%d:items" % number, "list", 5000, 30)
    found = learned_from(tree)
    assert [(named.pattern, group.keys, group.memory_bytes) for named, group in found] == [
        ("cart:{cart_id}:items", 20, 600), ("user:{user_id}", 20, 200)]


def test_shapes_that_get_one_name_are_one_pattern() -> None:
    tree = Tree()
    for number in range(20):
        tree.add(b"seen:%d" % number, "string", -1, 10)
        tree.add(b"seen:%032x" % (number * 7**25), "string", -1, 10)
    assert sum(group.keys for _, group in learned_from(tree)) == 40
    assert len({named.pattern for named, _ in learned_from(Tree())}) == 0
