"""Rectangles whose areas stand for numbers, as square as they can be (the squarified layout)."""

from collections.abc import Sequence
from dataclasses import dataclass

SMALLEST_SHARE = 1e-6  # less is no point on a screen, and only the rounding of what is left would be drawn


@dataclass(frozen=True, slots=True)
class Box:
    """One rectangle; ``index`` is the place of its number in what was given."""

    index: int
    x: float
    y: float
    width: float
    height: float


def layout(sizes: Sequence[float], width: float, height: float) -> list[Box]:
    """A box for each number that can be seen beside the others, together filling the area. The largest come first."""
    least = sum(sizes) * SMALLEST_SHARE
    given = [(index, size) for index, size in enumerate(sizes) if size > least]
    total = sum(size for _, size in given)
    if not given or width <= 0 or height <= 0:
        return []
    scale = width * height / total
    areas = [(index, size * scale) for index, size in given]
    boxes: list[Box] = []
    x = y = 0.0
    start = 0
    while start < len(areas):
        side = min(width, height)
        end = start + 1
        while end < len(areas) and _worst(areas[start:end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        filled = sum(area for _, area in row)
        thick = filled / side if side else 0.0
        offset = 0.0
        for index, area in row:
            long = area / thick if thick else 0.0
            if width >= height:
                boxes.append(Box(index, x, y + offset, thick, long))
            else:
                boxes.append(Box(index, x + offset, y, long, thick))
            offset += long
        if width >= height:
            x, width = x + thick, max(0.0, width - thick)
        else:
            y, height = y + thick, max(0.0, height - thick)
        start = end
    return boxes


def _worst(row: Sequence[tuple[int, float]], side: float) -> float:
    """How far from a square the least square box of a row would be."""
    filled = sum(area for _, area in row)
    if not filled or not side:
        return float("inf")
    thick = filled / side
    return max(max(thick * thick / area, area / (thick * thick)) for _, area in row)
