"""Who came back, as colours: a row for those who joined together, a column for each period. And the same as lines."""

from typing import Any, Final

from keystead.stats.charts_cohorts import CohortGrid
from keystead.web.dashboard import stats_chart
from keystead.web.dashboard.stats_colours import GOOD, GRID, QUIET

ROW_PIXELS: Final = 24
FRAME_PIXELS: Final = 92
# From nobody to everybody, readable on both grounds; words in a cell are dark or light as the cell demands.
SHADES: Final = ("#d9e7ea", "#a9d3cf", "#6fbcb3", "#34a091", "#0f7f74", "#075e57")
_DARK_WORDS: Final = "#10302d"
_LIGHT_WORDS: Final = "#f2fbf9"
_LIGHT_FROM: Final = 0.65

_TOOLTIP: Final = """(point) => {
  const [column, row, rate, retained, size, late] = point.data.value;
  const number = (n) => Number(n).toLocaleString("en-US");
  return `<div style="margin-bottom:4px">joined %s${point.data.row}</div>` +
    `<b>${rate.toFixed(1)} %%</b> were active ${point.data.period}<br>${number(retained)} of ${number(size)}` +
    (late ? `<br>${number(late)} more were told too late to be followed` : "");
}"""


def period_said(days: int) -> str:
    """The head of a column."""
    return "same day" if days == 0 else f"{days} day" if days == 1 else f"{days} days"


def rate(grid: CohortGrid, row: int, column: int) -> float | None:
    """In per cent; None while the period is not over for everyone in the row, or if nobody joined."""
    retained, size = grid.retained[row][column], grid.sizes[row]
    return None if retained is None or not size else 100 * retained / size


def overall(grid: CohortGrid) -> list[tuple[float | None, int, int]]:
    """For each period the rate, 0 to 1, over everyone for whom it is over: who came back, of how many."""
    found: list[tuple[float | None, int, int]] = []
    for column in range(len(grid.periods)):
        known = [(row[column] or 0, size) for row, size in zip(grid.retained, grid.sizes, strict=True)
                 if row[column] is not None]
        retained, size = sum(pair[0] for pair in known), sum(pair[1] for pair in known)
        found.append((retained / size if size else None, retained, size))
    return found


def cells(grid: CohortGrid) -> list[dict[str, Any]]:
    """One for each rate that is known."""
    made = []
    for row, label in enumerate(grid.labels):
        for column, period in enumerate(grid.periods):
            if (found := rate(grid, row, column)) is not None:
                words = _LIGHT_WORDS if found >= 100 * _LIGHT_FROM else _DARK_WORDS
                made.append({
                    "value": [column, row, round(found, 1), grid.retained[row][column], grid.sizes[row],
                              grid.late[row]],
                    "row": label, "label": {"color": words},
                    "period": "on the day they joined" if period == 0 else f"{period_said(period)} later or after that",
                })
    return made


def height(grid: CohortGrid) -> int:
    """Pixels, so that each row can be read."""
    return FRAME_PIXELS + ROW_PIXELS * max(1, len(grid.labels))


def heatmap_options(grid: CohortGrid) -> dict[str, Any]:
    """The whole heat map. The newest row is at the top, as in the tables."""
    joined = "in the week of " if grid.by == "week" else ""
    rows = [f"{label}  ({size:,})" for label, size in zip(grid.labels, grid.sizes, strict=True)]
    return {
        "animation": False, "aria": {"enabled": True},
        "grid": {"left": 8, "right": 12, "top": 10, "bottom": 46, "containLabel": True},
        "tooltip": {**stats_chart.tooltip(), "trigger": "item", ":formatter": _TOOLTIP % joined},
        "legend": {"show": False},
        "xAxis": {
            "type": "category", "position": "top", "data": [period_said(period) for period in grid.periods],
            "axisLine": {"show": False}, "axisTick": {"show": False},
            "axisLabel": {"color": QUIET, "fontSize": 12, "interval": 0, "width": 54, "overflow": "break"},
        },
        "yAxis": {
            "type": "category", "data": rows, "axisLine": {"show": False}, "axisTick": {"show": False},
            "axisLabel": {"color": QUIET, "fontSize": 11.5, "interval": 0},
        },
        "visualMap": {
            "type": "continuous", "min": 0, "max": 100, "dimension": 2, "calculable": False, "orient": "horizontal",
            "left": "center", "bottom": 0, "itemHeight": 160, "itemWidth": 12, "text": ["100 %", "0 %"],
            "textStyle": {"color": QUIET, "fontSize": 11.5}, "inRange": {"color": list(SHADES)},
        },
        "series": [{
            "type": "heatmap", "name": "came back", "data": cells(grid),
            "itemStyle": {"borderColor": "rgba(128, 140, 160, .25)", "borderWidth": 1, "borderRadius": 3},
            "label": {"show": True, "fontSize": 11.5, ":formatter": '(point) => point.data.value[2] + " %"'},
            "emphasis": {"itemStyle": {"borderColor": QUIET, "borderWidth": 2}},
        }],
    }


def line_options(grid: CohortGrid) -> dict[str, Any]:
    """A line for each period over the days of joining; a gap where nothing is known."""
    return {
        "animation": False, "aria": {"enabled": True},
        "grid": {"left": 8, "right": 16, "top": 40, "bottom": 6, "containLabel": True},
        "legend": {"show": True, "top": 6, "textStyle": {"color": QUIET}, "icon": "roundRect", "itemWidth": 12,
                   "itemHeight": 8},
        "tooltip": {**stats_chart.tooltip(rates=True), "axisPointer": {"lineStyle": {"color": QUIET}}},
        "xAxis": {"type": "category", "data": list(grid.labels), "axisLine": {"lineStyle": {"color": GRID}},
                  "axisTick": {"show": False}, "axisLabel": {"color": QUIET, "fontSize": 11.5, "hideOverlap": True}},
        "yAxis": {"type": "value", "min": 0, "max": 100, "interval": 25,
                  "axisLabel": {"color": QUIET, "fontSize": 11.5, "formatter": "{value} %"},
                  "splitLine": {"lineStyle": {"color": GRID}}},
        "series": [
            {"name": period_said(period), "type": "line", "connectNulls": False, "showSymbol": len(grid.labels) < 32,
             "symbolSize": 5, "lineStyle": {"width": 1.8}, "itemStyle": {"color": GOOD[column % len(GOOD)]},
             "data": [None if (found := rate(grid, row, column)) is None else round(found, 1)
                      for row in range(len(grid.labels))]}
            for column, period in enumerate(grid.periods)
        ],
    }
