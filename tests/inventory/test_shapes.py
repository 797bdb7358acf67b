"""A pattern taken apart."""

import pytest

from keystead.inventory import Entry
from keystead.inventory.shapes import shape_of, values_of


@pytest.mark.parametrize(("pattern", "separator", "segments"), [
    ("a:{b}:c", ":", 3), ("a.b.{c}", ".", 3), ("a/b:{c}.d", ":", 2), ("{a}", ":", 1), ("", ":", 1), ("a::b", ":", 3),
    ("a|{b}", "|", 2), ("a:{b.c}", ":", 2),
])
def test_segments_are_what_stands_between_separators(pattern: str, separator: str, segments: int) -> None:
    shape = shape_of(Entry(pattern))

    assert (shape.separator, len(shape.segments)) == (separator, segments)
    assert separator.join("".join(part if isinstance(part, str) else f"{{{part.name}}}" for part in segment.parts)
                          for segment in shape.segments) == pattern


def test_names_are_told_apart_and_unknown_kinds_stand_for_any_word() -> None:
    shape = shape_of(Entry("{a}:{a}:{a_2}:*", variables=(("a", "no such kind"),)))

    assert shape.names == ("a", "a_2", "a_2_2", "")
    assert [hole.kind.name for hole in shape.holes] == ["word", "word", "word", "text"]
    assert shape.weight == 3 and shape.prefix == ""


def test_values_of_holes_fit_their_kinds_wherever_they_are_parted() -> None:
    shape = shape_of(Entry("{name}-{uuid}"))
    uuid = "123e4567-e89b-12d3-a456-426614174000"

    assert values_of(shape.parts, ":")(f"a-b-{uuid}") == ("a-b", uuid)
    assert values_of(shape.parts, ":")("a-b") is None
    assert values_of(shape.without_kinds().parts, ":")("a-b") == ("a", "b")
