"""Counts by day as a chart: stacked bars or plain lines, days that are still counted lighter than the others."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from keystead.stats.series import Series
from keystead.web.dashboard.stats_colours import GRID, LIVE, QUIET, colours

STILL: Final = "still counting"
# Above so many days a bar is thinner than the gap beside it: the same as areas.
MOST_BARS: Final = 200
LIVE_OPACITY: Final = 0.55

Lines = Mapping[str, Sequence[int]]

# Names may hold anything that was counted, so that they are escaped; days without a count are not listed.
_TOOLTIP: Final = """(points) => {
  const plain = (text) => String(text).replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
  const value = (point) => typeof point.data === "object" && point.data ? point.data.value : point.data;
  const some = points.filter((point) => value(point)).sort((a, b) => value(b) - value(a));
  const rows = some.slice(0, 14).map((point) =>
    `<tr><td>${point.marker}${plain(point.seriesName)}</td><td style="text-align:right;padding-left:18px">` +
    `<b>${Number(value(point)).toLocaleString("en-US")}</b></td></tr>`).join("");
  const more = some.length > 14 ? `<div>and ${some.length - 14} more</div>` : "";
  const head = points.length ? plain(points[0].axisValueLabel) : "";
  return `<div style="margin-bottom:4px">${head}</div>` + (some.length ? `<table>${rows}</table>${more}` : "nothing");
}"""

_SHORT_NUMBER: Final = (
    '(value) => value >= 1e9 ? value / 1e9 + " G" : value >= 1e6 ? value / 1e6 + " M" : value >= 1e4 ? '
    'value / 1e3 + " k" : value.toLocaleString("en-US")'
)
_RATE: Final = '(value) => value == null ? "not known yet" : value.toFixed(1) + " %"'
_SHORT_DAY: Final = "(value) => value.length === 10 ? value.slice(5) : value"


def something(lines: Lines) -> dict[str, list[int]]:
    """The lines on which anything was counted, in their order."""
    return {name: list(days) for name, days in lines.items() if any(days)}


def options(series: Series, lines: Lines, *, stacked: bool = True) -> dict[str, Any]:
    """The whole chart of ``lines`` over the days of ``series``."""
    return {
        "animation": False,
        "aria": {"enabled": True},
        "grid": {"left": 8, "right": 12, "top": 16, "bottom": 6, "containLabel": True},
        "legend": {"show": False, "top": 44, "left": "center", "textStyle": {"color": QUIET}},
        "tooltip": tooltip(),
        "xAxis": day_axis(series),
        "yAxis": number_axis(),
        "series": drawn(series, lines, stacked=stacked),
    }


def moved(series: Series, lines: Lines, *, stacked: bool = True) -> dict[str, Any]:
    """What changes while days are counted; the order of the lines is that of ``options``."""
    return {"xAxis": {"data": list(series.labels)}, "series": drawn(series, lines, stacked=stacked)}


def drawn(series: Series, lines: Lines, *, stacked: bool) -> list[dict[str, Any]]:
    """The lines, and last the ground below the live days, which has no name in a legend."""
    shades, bars = colours(lines), stacked and len(series.labels) <= MOST_BARS
    live_at = max(0, series.live_from - series.start)
    made: list[dict[str, Any]] = []
    for name, days in lines.items():
        one: dict[str, Any] = {"name": name, "id": name, "itemStyle": {"color": shades[name]},
                               "emphasis": {"focus": "series"}}
        if bars:
            one |= {"type": "bar", "stack": "all", "barCategoryGap": "22%", "barMaxWidth": 72,
                    "data": _lighter(days, live_at)}
        else:
            one |= {"type": "line", "showSymbol": len(days) == 1, "lineStyle": {"width": 1.8, "color": shades[name]},
                    "data": list(days)}
            if stacked:  # where days are this narrow, a line around an area would hide the area
                one |= {"stack": "all", "lineStyle": {"width": 0},
                        "areaStyle": {"color": shades[name], "opacity": 0.85}}
        made.append(one)
    made.append({"name": STILL, "id": STILL, "type": "bar" if bars else "line", "data": [], "silent": True,
                 **({"stack": "all"} if bars else {}), "markArea": live_ground(series)})
    return made


def _lighter(days: Sequence[int], live_at: int) -> list[Any]:
    return [amount if at < live_at else {"value": amount, "itemStyle": {"opacity": LIVE_OPACITY}}
            for at, amount in enumerate(days)]


def live_ground(series: Series) -> dict[str, Any]:
    """A grey ground behind the days that are still counted, with words if there is room for them."""
    live = series.live
    data = [] if not live else [[{"xAxis": live[0]}, {"xAxis": live[-1]}]]
    room = len(live) * 12 >= len(series.labels)
    return {
        "silent": True, "itemStyle": {"color": LIVE}, "data": data,
        "label": {"show": room, "formatter": STILL, "color": QUIET, "fontSize": 11, "position": "insideTop"},
    }


def tooltip(*, rates: bool = False) -> dict[str, Any]:
    """What is shown of the day under the pointer; ``rates`` are in per cent."""
    words = {":valueFormatter": _RATE} if rates else {":formatter": _TOOLTIP}
    return {
        "trigger": "axis", "backgroundColor": "rgba(20, 27, 36, .96)", "borderWidth": 0, "padding": [8, 12],
        "textStyle": {"color": "#eef2f6", "fontSize": 12.5}, "confine": True,
        "axisPointer": {"type": "shadow", "shadowStyle": {"color": "rgba(128, 140, 160, .14)"}}, **words,
    }


def day_axis(series: Series) -> dict[str, Any]:
    return {
        "type": "category", "data": list(series.labels), "axisLine": {"lineStyle": {"color": GRID}},
        "axisTick": {"show": False},
        "axisLabel": {"color": QUIET, "fontSize": 11.5, "hideOverlap": True,
                      **({} if len(series.labels) > MOST_BARS else {":formatter": _SHORT_DAY})},
    }


def number_axis() -> dict[str, Any]:
    return {
        "type": "value", "min": 0, "minInterval": 1, "splitNumber": 4,
        "axisLabel": {"color": QUIET, "fontSize": 11.5, ":formatter": _SHORT_NUMBER},
        "splitLine": {"lineStyle": {"color": GRID}},
    }
