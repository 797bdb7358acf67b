"""Overlaps are found without comparing every pattern with every other."""

import time

from keystead.inventory import Entry
from keystead.inventory.overlaps import overlaps
from keystead.inventory.shapes import shape_of


def test_thousands_of_patterns_are_compared_soon() -> None:
    entries = [Entry(f"app:room{number}:{{id}}:{part}") for number in range(1500) for part in ("a", "b")]
    entries += [Entry("app:{room}:7:c"), Entry("app:room3:{other}:a")]
    started = time.monotonic()

    [found] = overlaps([(entry, shape_of(entry)) for entry in entries])

    assert time.monotonic() - started < 20
    assert (found.first.pattern, found.second.pattern) == ("app:room3:{id}:a", "app:room3:{other}:a")


def test_the_same_pattern_twice_is_no_overlap() -> None:
    entry = Entry("a:{x}")

    assert overlaps([(entry, shape_of(entry)), (entry, shape_of(entry))]) == ()
