"""Reminders by weekday and hour as colours: a table, so that it can be read without seeing colours."""

from typing import Final

from keystead.reminders.effective import DAYS
from keystead.reminders.heat import HOURS, Grid
from keystead.web.dashboard.shown import shown_count

# From Monday, as most people read a week; the grid begins with Sunday.
ORDER: Final = (1, 2, 3, 4, 5, 6, 0)
# How many the style sheet has, for a light ground and a dark one: s0 to s5.
SHADES: Final = 6


def shade(number: float, most: float) -> int | None:
    """Which of the shades; None for nothing."""
    if number <= 0 or most <= 0:
        return None
    return min(SHADES - 1, int(number / most * SHADES))


def short(number: float) -> str:
    """``12``, ``3.4k``; a part of one is told as one, since somebody is meant."""
    rounded = max(1, round(number))
    if rounded < 1000:
        return str(rounded)
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rounded >= size:
            return f"{rounded / size:.1f}{unit}" if rounded < 10 * size else f"{rounded / size:.0f}{unit}"
    return str(rounded)


def heat_html(grid: Grid, what: str) -> str:
    """A row for each day, a column for each hour of the reader's own clock."""
    most = max(map(max, grid))
    hours = "".join(f'<th scope="col">{hour}</th>' for hour in range(HOURS))
    rows = "".join(f'<tr><th scope="row">{DAYS[day][:3]}</th>' + "".join(
        _cell(grid, day, hour, most, what) for hour in range(HOURS)) + "</tr>" for day in ORDER)
    return f'<div class="ms-heat" tabindex="0"><table><thead><tr><th></th>{hours}</tr></thead><tbody>{rows}</tbody>' \
           f"</table></div>{_scale(most)}"


def _cell(grid: Grid, day: int, hour: int, most: float, what: str) -> str:
    number = grid[day][hour]
    chosen = shade(number, most)
    if chosen is None:
        return "<td></td>"
    title = f"{DAYS[day]} from {hour:02}:00: about {shown_count(max(1, round(number)))} {what}"
    return f'<td class="s{chosen}" title="{title}">{short(number)}</td>'


def _scale(most: float) -> str:
    steps = "".join(f'<i class="s{step}"></i>' for step in range(SHADES))
    return f'<div class="ms-scale">fewer <span>{steps}</span> {short(most)} in an hour</div>'


def busiest(grid: Grid) -> tuple[int, int] | None:
    """Weekday and hour with the most; None if there are none."""
    most = max(map(max, grid))
    return None if most <= 0 else next(
        (day, hour) for day in ORDER for hour in range(HOURS) if grid[day][hour] == most)
