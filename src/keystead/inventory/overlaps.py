"""Patterns that fit the same key although neither is the more literal one.

``jobs:hot`` beside ``jobs:{name}`` is no such pair: whoever reads both knows which one is meant.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from keystead.inventory.models import Entry
from keystead.inventory.shapes import Segment, Shape, values_of

_MOST = 1000


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two entries and a key that fits both."""

    first: Entry
    second: Entry
    example: str


def overlaps(shapes: list[tuple[Entry, Shape]]) -> tuple[Overlap, ...]:
    """The pairs, in the order of the inventory; at most a thousand. Patterns that span separators are left out."""
    groups: dict[tuple[str, int], list[int]] = {}
    for index, (_, shape) in enumerate(shapes):
        if not any(segment.spans for segment in shape.segments):
            groups.setdefault((shape.separator, len(shape.segments)), []).append(index)
    seen: set[tuple[int, int]] = set()
    found: list[tuple[tuple[int, int], Overlap]] = []
    for group in groups.values():
        for pair in _candidates(shapes, group, 0):
            if pair in seen or len(found) >= _MOST:
                continue
            seen.add(pair)
            (first, first_shape), (second, second_shape) = shapes[pair[0]], shapes[pair[1]]
            if first.pattern != second.pattern and not _decided(first_shape, second_shape):
                example = _shared(first_shape, second_shape)
                if example is not None:
                    found.append((pair, Overlap(first, second, example)))
    return tuple(overlap for _, overlap in sorted(found, key=lambda each: each[0]))


def _candidates(shapes: list[tuple[Entry, Shape]], group: list[int], depth: int) -> Iterator[tuple[int, int]]:
    """Pairs whose texts agree at every place where both have only text."""
    if len(group) < 2:
        return
    if depth == len(shapes[group[0]][1].segments):
        yield from combinations(sorted(group), 2)
        return
    texts: dict[str, list[int]] = {}
    others: list[int] = []
    for index in group:
        segment = shapes[index][1].segments[depth]
        if segment.holes:
            others.append(index)
        else:
            texts.setdefault(segment.text, []).append(index)
    for same in texts.values():
        yield from _candidates(shapes, same + others, depth + 1)
    yield from _candidates(shapes, others, depth + 1)


def _decided(first: Shape, second: Shape) -> bool:
    """Whether one of them is nowhere less literal than the other, and somewhere more."""
    ranks = [(one.rank, other.rank) for one, other in zip(first.segments, second.segments, strict=True)]
    ahead, behind = any(one < other for one, other in ranks), any(one > other for one, other in ranks)
    return ahead != behind


def _shared(first: Shape, second: Shape) -> str | None:
    """A key that fits both, if one is found by trying."""
    texts: list[str] = []
    for one, other in zip(first.segments, second.segments, strict=True):
        text = next((each for each in _tries(one, other) if _fits(one, each) and _fits(other, each)), None)
        if text is None:
            return None
        texts.append(text)
    return first.separator.join(texts)


def _fits(segment: Segment, text: str) -> bool:
    if not segment.holes:
        return text == segment.text
    return values_of(segment.parts, ":")(text) is not None


def _tries(first: Segment, second: Segment) -> Iterator[str]:
    for segment in sorted((first, second), key=lambda each: each.rank):
        if not segment.holes:
            yield segment.text
            return
        for which in range(3):
            yield "".join(part if isinstance(part, str) else
                          (part.kind.witnesses()[which % len(part.kind.witnesses())] if part.kind.name != "word"
                           else "1") for part in segment.parts)
    # A beginning of the one and an end of the other.
    heads = [part for segment in (first, second) for part in segment.parts[:1] if isinstance(part, str)]
    ends = [part for segment in (first, second) for part in segment.parts[-1:] if isinstance(part, str)]
    yield max(heads, key=len, default="") + "1" + max(ends, key=len, default="")
