"""Whether two patterns could own the same key, and which of them is more literal.

Two patterns are laid side by side, segment by segment; a variable that may hold colons is tried at every length that
could matter. The patterns overlap if every pair of segments has a text that both accept. One of them is the more
literal if its segments are nowhere less specific than the other's and somewhere more so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from keystead.keys.template import Segment, Template, Variable
from keystead.keys.variables import IP, KINDS, TEXT, Kind, OneOf

_LITERAL, _MIXED, _LISTED, _SINGLE, _SPANNING = 4, 3, 2, 1, 0


class _Piece(Kind):
    """What one segment of a value with colons may hold."""

    spans_colons = True

    def __init__(self, expression: str, example: str) -> None:
        super().__init__("piece", expression, characters=r"[^:]", says="", sample=lambda rng: example)


_TEXT_PIECE = _Piece(r"[^:]*", "x")
_ADDRESS_PIECE = _Piece(r"[1-9a-f][0-9a-f]{0,3}", "db8")
_ADDRESS_GAP = _Piece(r"", "")
_SHARED_WITNESSES = tuple(
    dict.fromkeys(text for kind in KINDS.values() for text in kind.witnesses() if ":" not in text)
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """A key that both patterns match, and who should own such keys: 1 the first, -1 the second, 0 neither."""

    example: str
    more_literal: int


def overlap(first: Template, second: Template) -> Overlap | None:
    """Where the two patterns meet; of several places, one where neither is more literal comes first."""
    found: Overlap | None = None
    for length in _lengths(first, second):
        for left in _laid_out(first, length):
            for right in _laid_out(second, length):
                example = _common(left, right)
                if example is None or first.match(example) is None or second.match(example) is None:
                    continue
                meeting = Overlap(example, _compare(left, right))
                if meeting.more_literal == 0 or (found and found.more_literal != meeting.more_literal):
                    return Overlap(example, 0)
                found = meeting
    return found


def _lengths(first: Template, second: Template) -> range:
    shortest_first, shortest_second = len(first.segments), len(second.segments)
    spans_first = any(segment.spans_colons for segment in first.segments)
    spans_second = any(segment.spans_colons for segment in second.segments)
    if spans_first and spans_second:
        return range(max(shortest_first, shortest_second), shortest_first + shortest_second + 8)
    if spans_first:
        return range(shortest_second, shortest_second + (shortest_second >= shortest_first))
    if spans_second:
        return range(shortest_first, shortest_first + (shortest_first >= shortest_second))
    return range(shortest_first, shortest_first + (shortest_first == shortest_second))


def _laid_out(template: Template, length: int) -> Iterator[tuple[Segment, ...]]:
    """The pattern as exactly ``length`` segments, if it can have so many."""
    at = next((i for i, segment in enumerate(template.segments) if segment.spans_colons), None)
    covered = length - len(template.segments) + 1
    if at is None or covered == 1:
        if covered == 1:
            yield template.segments
        return
    segment = template.segments[at]
    where = next(i for i, part in enumerate(segment.parts) if isinstance(part, Variable) and part.spans_colons)
    variable = segment.parts[where]
    assert isinstance(variable, Variable)
    for pieces in _pieces(variable.kind, covered):
        first, *others = (Variable(variable.name, piece) for piece in pieces)
        yield (
            *template.segments[:at],
            Segment((*segment.parts[:where], first)),
            *(Segment((other,)) for other in others[:-1]),
            Segment((others[-1], *segment.parts[where + 1 :])),
            *template.segments[at + 1 :],
        )


def _pieces(kind: Kind, count: int) -> Iterator[list[_Piece]]:
    """The ways in which a value of the kind can lie over ``count`` segments, at least two."""
    if kind is TEXT:
        yield [_TEXT_PIECE] * count
        return
    if kind is IP:
        whole, gap = [_ADDRESS_PIECE] * count, _ADDRESS_GAP
        if count == 8:
            yield whole
        if 3 <= count <= 8:
            yield [gap, gap, *whole[2:]]
            yield [*whole[2:], gap, gap]
        if 3 <= count <= 7:
            yield from ([*whole[:place], gap, *whole[place + 1 :]] for place in range(1, count - 1))
    for witness in kind.witnesses():
        texts = witness.split(":")
        if len(texts) == count:
            yield [_Piece(re.escape(text), text) for text in texts]


def _common(left: tuple[Segment, ...], right: tuple[Segment, ...]) -> str | None:
    texts: list[str] = []
    for one, other in zip(left, right, strict=True):
        text = next((text for text in _candidates(one, other) if _accepts(one, text) and _accepts(other, text)), None)
        if text is None:
            return None
        texts.append(text)
    return ":".join(texts)


def _candidates(one: Segment, other: Segment) -> Iterator[str]:
    for segment in (one, other):
        if segment.literal is not None:
            yield segment.literal
            return
    witnesses = (
        *(text for segment in (one, other) for variable in segment.variables for text in variable.kind.witnesses()),
        *_SHARED_WITNESSES, "",
    )
    for witness in witnesses:
        yield witness
        for segment in (one, other):
            yield _filled(segment, witness)
        yield one.prefix + witness + other.suffix
        yield other.prefix + witness + one.suffix


def _filled(segment: Segment, witness: str) -> str:
    """The segment with ``witness`` wherever its kind allows, and a value of its own elsewhere."""
    return "".join(
        part if isinstance(part, str) else witness if part.kind.accepts(witness) else part.kind.witnesses()[0]
        for part in segment.parts
    )


def _accepts(segment: Segment, text: str) -> bool:
    if segment.literal is not None:
        return segment.literal == text
    only = segment.only
    if only is not None:
        return ":" not in text and only.kind.accepts(text)
    # A mixture is accepted by its shape; the finished key is checked against the whole pattern afterwards.
    return re.fullmatch(segment.expression, text) is not None


def _compare(left: tuple[Segment, ...], right: tuple[Segment, ...]) -> int:
    signs = {_more_specific(one, other) for one, other in zip(left, right, strict=True)} - {0}
    return (signs.pop() or 0) if len(signs) == 1 else 0


def _more_specific(one: Segment, other: Segment) -> int | None:
    """1 or -1 for the more specific one, 0 if they are alike, None if they cannot be compared."""
    rank_one, rank_other = _rank(one), _rank(other)
    if rank_one != rank_other:
        return 1 if rank_one > rank_other else -1
    if rank_one != _MIXED:
        return 0
    if one.prefix == other.prefix and one.suffix == other.suffix:
        return int(other.spans_colons) - int(one.spans_colons)
    if one.prefix.startswith(other.prefix) and one.suffix.endswith(other.suffix):
        return 1
    if other.prefix.startswith(one.prefix) and other.suffix.endswith(one.suffix):
        return -1
    return None


def _rank(segment: Segment) -> int:
    if segment.literal is not None:
        return _LITERAL
    only = segment.only
    if only is None:
        return _MIXED
    if isinstance(only.kind, OneOf):
        return _LISTED
    # Only free text is wider than a single value; an address is not, even where it covers several segments.
    return _SPANNING if only.kind in (TEXT, _TEXT_PIECE) else _SINGLE
