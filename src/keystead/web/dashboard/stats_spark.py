"""A line of counts as small as a word, drawn on the server: an SVG that takes its colours from the page."""

from collections.abc import Sequence
from typing import Final

WIDTH: Final = 240
HEIGHT: Final = 44
# A line needs no more points than this; more days are added up.
MOST_POINTS: Final = 120


def sparkline(days: Sequence[float], live: int = 0) -> str:
    """The days from left to right; the last ``live`` of them, which are still counted, are dashed."""
    points, live = _thinned(days, live)
    if not points:
        return ""
    most = max(*points, 1)
    step = WIDTH / max(1, len(points) - 1)
    spots = [(round(at * step, 1), round(HEIGHT - 3 - amount / most * (HEIGHT - 8), 1))
             for at, amount in enumerate(points)]
    if len(spots) == 1:
        spots.append((float(WIDTH), spots[0][1]))
    live = min(live, len(spots) - 1)
    over = spots[: len(spots) - live]
    going_on = spots[len(spots) - live - 1 :] if live else []
    area = f"M0 {HEIGHT} " + " ".join(f"L{x:g} {y:g}" for x, y in spots) + f" L{WIDTH} {HEIGHT} Z"
    return (
        f'<svg class="ks-spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="area" d="{area}"/>{_path(over, "line")}{_path(going_on, "line live")}</svg>'
    )


def _path(spots: Sequence[tuple[float, float]], classes: str) -> str:
    if len(spots) < 2:
        return ""
    return f'<path class="{classes}" d="M{" L".join(f"{x:g} {y:g}" for x, y in spots)}"/>'


def _thinned(days: Sequence[float], live: int) -> tuple[list[float], int]:
    if len(days) <= MOST_POINTS:
        return list(days), live
    together = -(-len(days) // MOST_POINTS)
    # From the right, so that the newest point is always of as many days as the others.
    first = len(days) % together
    sums = [sum(days[at : at + together]) for at in range(first, len(days), together)]
    return sums, -(-live // together)
