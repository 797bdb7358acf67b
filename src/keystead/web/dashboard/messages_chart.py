"""The moving lines of messages: what each channel sends per second."""

from collections.abc import Iterable
from typing import Any

from keystead.web.dashboard import chart
from keystead.web.dashboard.chart import LEAST_SHOWN_SECONDS, SHOWN_SECONDS, Point
from keystead.web.message_rates import STEPS, MessageRateSample

# The colours of the channels in the style sheet, readable on both grounds.
COLOURS = {"push": "#8f72d6", "sms": "#14a08f", "email": "#4c86d9"}
_SENT = STEPS.index("sent")


def points(samples: Iterable[MessageRateSample], now: float, channel: str) -> list[Point]:
    """One channel in the last minutes: unix milliseconds, and what it sent per second or a gap."""
    return [(round(sample.at * 1000),
             None if sample.rates is None else round(sample.rates.by_channel[channel][_SENT], 1))
            for sample in samples if sample.at > now - SHOWN_SECONDS]


def moved(samples: Iterable[MessageRateSample], now: float) -> dict[str, Any]:
    """What changes from second to second."""
    samples = list(samples)
    shown = [points(samples, now, channel) for channel in COLOURS]
    last_ms = round(now * 1000)
    first_ms = min(shown[0][0][0] if shown[0] else last_ms, last_ms - LEAST_SHOWN_SECONDS * 1000)
    return {"xAxis": {"min": first_ms, "max": last_ms}, "series": [{"data": data} for data in shown]}


def options(samples: Iterable[MessageRateSample], now: float) -> dict[str, Any]:
    """The whole chart: that of commands, with a line for each channel."""
    moving = moved(samples, now)
    whole = chart.options((), now)
    [pattern] = whole["series"]
    whole["xAxis"] |= moving["xAxis"]
    whole["series"] = [
        {**pattern, "name": f"{name}/s", "lineStyle": {"width": 1.8, "color": colour}, "itemStyle": {"color": colour},
         "areaStyle": {"color": colour, "opacity": 0.08}, **data}
        for (name, colour), data in zip(COLOURS.items(), moving["series"], strict=True)
    ]
    return whole
