"""The moving line."""

from keystead.web.dashboard.chart import LEAST_SHOWN_SECONDS, SHOWN_SECONDS, moved, options, points
from keystead.web.sampler import RateSample


def samples(*rates, now=1000.0):
    return [RateSample(now - len(rates) + 1 + index, rate, 1) for index, rate in enumerate(rates)]


def test_points_keep_gaps():
    assert points(samples(1.26, None, 3), 1000) == [(998_000, 1.3), (999_000, None), (1_000_000, 3)]


def test_old_samples_leave_on_the_left():
    assert points([RateSample(1000 - SHOWN_SECONDS, 1.0, 1), RateSample(1000, 2.0, 1)], 1000) == [(1_000_000, 2.0)]


def test_young_history_fills_the_chart_and_an_old_one_is_cut():
    assert moved([], 1000)["xAxis"]["min"] == (1000 - LEAST_SHOWN_SECONDS) * 1000
    young = moved(samples(*[1.0] * 100), 1000)["xAxis"]
    assert young == {"min": 901_000, "max": 1_000_000}
    old = moved(samples(*[1.0] * 600), 1000)["xAxis"]
    assert old["min"] == (1000 - SHOWN_SECONDS + 1) * 1000


def test_whole_chart_starts_with_what_moves():
    history = samples(1.0, 2.0)
    whole = options(history, 1000)
    assert whole["series"][0]["data"] == moved(history, 1000)["series"][0]["data"]
    assert whole["xAxis"]["axisLabel"]["formatter"] == "{HH}:{mm}:{ss}"
    assert whole["animation"] is False
