"""The three moving lines of jobs: done, failed and retried per second."""

from collections.abc import Iterable
from typing import Any

from keystead.web.dashboard import chart
from keystead.web.dashboard.chart import LEAST_SHOWN_SECONDS, SHOWN_SECONDS, Point
from keystead.web.job_rates import JobRates, JobRateSample

# The colours of the legend in the style sheet, readable on both grounds.
LINES = (("done", "#14a08f"), ("failed", "#dc4c3e"), ("retried", "#d18a14"))


def points(samples: Iterable[JobRateSample], now: float, line: str) -> list[Point]:
    """One line of the last minutes: unix milliseconds, and the rate or a gap."""
    return [(round(sample.at * 1000), _rate(sample.rates, line)) for sample in samples
            if sample.at > now - SHOWN_SECONDS]


def _rate(rates: JobRates | None, line: str) -> float | None:
    return None if rates is None else round(getattr(rates, line), 1)


def moved(samples: Iterable[JobRateSample], now: float) -> dict[str, Any]:
    """What changes from second to second."""
    samples = list(samples)
    shown = [points(samples, now, line) for line, _ in LINES]
    last_ms = round(now * 1000)
    first_ms = min(shown[0][0][0] if shown[0] else last_ms, last_ms - LEAST_SHOWN_SECONDS * 1000)
    return {"xAxis": {"min": first_ms, "max": last_ms}, "series": [{"data": data} for data in shown]}


def options(samples: Iterable[JobRateSample], now: float) -> dict[str, Any]:
    """The whole chart: that of commands, with three lines in place of one."""
    moving = moved(samples, now)
    whole = chart.options((), now)
    [pattern] = whole["series"]
    whole["xAxis"] |= moving["xAxis"]
    whole["series"] = [
        {**pattern, "name": f"{name}/s", "lineStyle": {"width": 1.8, "color": colour}, "itemStyle": {"color": colour},
         "areaStyle": {"color": colour, "opacity": 0.1 if name == "done" else 0}, **data}
        for (name, colour), data in zip(LINES, moving["series"], strict=True)
    ]
    return whole
