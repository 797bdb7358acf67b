"""The moving line of commands per second."""

from collections.abc import Iterable
from typing import Any

from keystead.web.sampler import RateSample

SHOWN_SECONDS = 300
LEAST_SHOWN_SECONDS = 60
# Readable on both grounds: a canvas knows nothing of the page's colours.
_LINE = "#14a08f"
_QUIET = "#8592a3"
_GRID = "rgba(128, 140, 160, .16)"

Point = tuple[int, float | None]


def points(samples: Iterable[RateSample], now: float) -> list[Point]:
    """The last minutes as chart points: unix milliseconds, and the rate or a gap."""
    return [
        (round(sample.at * 1000), None if sample.commands_per_second is None else round(sample.commands_per_second, 1))
        for sample in samples
        if sample.at > now - SHOWN_SECONDS
    ]


def moved(samples: Iterable[RateSample], now: float) -> dict[str, Any]:
    """What changes from second to second. A young history fills the chart as well as an old one."""
    shown = points(samples, now)
    last_ms = round(now * 1000)
    first_ms = min(shown[0][0] if shown else last_ms, last_ms - LEAST_SHOWN_SECONDS * 1000)
    return {"xAxis": {"min": first_ms, "max": last_ms}, "series": [{"data": shown}]}


def options(samples: Iterable[RateSample], now: float) -> dict[str, Any]:
    """The whole chart."""
    moving = moved(samples, now)
    return {
        "animation": False,
        "grid": {"left": 52, "right": 16, "top": 14, "bottom": 28},
        "tooltip": {
            "trigger": "axis", "backgroundColor": "rgba(20, 27, 36, .94)", "borderWidth": 0, "padding": [6, 10],
            "textStyle": {"color": "#eef2f6", "fontSize": 12.5}, "axisPointer": {"lineStyle": {"color": _QUIET}},
        },
        "xAxis": {
            "type": "time", **moving["xAxis"], "axisLine": {"lineStyle": {"color": _GRID}}, "axisTick": {"show": False},
            "axisLabel": {
                "color": _QUIET, "fontSize": 11.5, "hideOverlap": True, "showMinLabel": False, "showMaxLabel": False,
                "formatter": "{HH}:{mm}:{ss}",  # every label alike: a bare minute among seconds looks like a gap
            },
            "minInterval": 10_000, "splitNumber": 5, "splitLine": {"show": False},
        },
        "yAxis": {
            "type": "value", "min": 0, "minInterval": 1, "splitNumber": 4,
            "axisLabel": {"color": _QUIET, "fontSize": 11.5}, "splitLine": {"lineStyle": {"color": _GRID}},
        },
        "series": [{
            "name": "commands/s", "type": "line", "showSymbol": False, "connectNulls": False,
            "lineStyle": {"width": 1.8, "color": _LINE}, "itemStyle": {"color": _LINE},
            "areaStyle": {"color": _LINE, "opacity": 0.1}, "data": moving["series"][0]["data"],
        }],
    }
