"""The moving lines of the overview: requests, jobs and messages per second."""

from collections.abc import Iterable
from typing import Any, Final

from keystead.web.dashboard import chart
from keystead.web.dashboard.chart import LEAST_SHOWN_SECONDS, SHOWN_SECONDS, Point
from keystead.web.job_rates import JobRates, JobRateSample
from keystead.web.message_rates import STEPS, MessageRates, MessageRateSample
from keystead.web.request_rates import RequestRate

# Readable on both grounds, and told apart also by those who see few colours.
COLOURS: Final = {"requests": "#4c86d9", "jobs": "#14a08f", "messages": "#c9791b"}
_SENT: Final = STEPS.index("sent")


def messages_sent(rates: MessageRates | None) -> float | None:
    """What all channels sent together."""
    return None if rates is None else sum(steps[_SENT] for steps in rates.by_channel.values())


def jobs_ended(rates: JobRates | None) -> float | None:
    """Those of all queues, and of tenants."""
    return None if rates is None else rates.done + rates.failed + rates.tenants


def points(
    requests: Iterable[RequestRate], jobs: Iterable[JobRateSample], messages: Iterable[MessageRateSample], now: float
) -> dict[str, list[Point]]:
    """The last minutes of each line: unix milliseconds, and the rate or a gap."""
    lines: dict[str, list[tuple[float, float | None]]] = {
        "requests": [(one.at, one.answered) for one in requests],
        "jobs": [(one.at, jobs_ended(one.rates)) for one in jobs],
        "messages": [(one.at, messages_sent(one.rates)) for one in messages],
    }
    return {name: [(round(at * 1000), None if rate is None else round(rate, 1)) for at, rate in line
                   if at > now - SHOWN_SECONDS] for name, line in lines.items()}


def moved(lines: dict[str, list[Point]], now: float) -> dict[str, Any]:
    """What changes from second to second. A young history fills the chart as well as an old one."""
    last_ms = round(now * 1000)
    first_ms = min([line[0][0] for line in lines.values() if line] + [last_ms - LEAST_SHOWN_SECONDS * 1000])
    return {"xAxis": {"min": first_ms, "max": last_ms}, "series": [{"data": lines[name]} for name in COLOURS]}


def options(lines: dict[str, list[Point]], now: float) -> dict[str, Any]:
    """The whole chart."""
    moving, whole = moved(lines, now), chart.options((), now)
    [pattern] = whole["series"]
    whole["xAxis"] |= moving["xAxis"]
    whole["series"] = [
        {**pattern, "name": f"{name}/s", "lineStyle": {"width": 1.8, "color": colour}, "itemStyle": {"color": colour},
         "areaStyle": {"color": colour, "opacity": 0.07}, **data}
        for (name, colour), data in zip(COLOURS.items(), moving["series"], strict=True)
    ]
    return whole
