"""The three lines of jobs."""

from keystead.web.dashboard.chart import LEAST_SHOWN_SECONDS, SHOWN_SECONDS
from keystead.web.dashboard.jobs_chart import LINES, moved, options, points
from keystead.web.job_rates import JobRates, JobRateSample

SAMPLES = [JobRateSample(998, JobRates(1.26, 0, 4)), JobRateSample(999, None), JobRateSample(1000, JobRates(3, 2, 1))]


def test_each_line_keeps_its_gaps():
    assert points(SAMPLES, 1000, "done") == [(998_000, 1.3), (999_000, None), (1_000_000, 3)]
    assert points(SAMPLES, 1000, "retried") == [(998_000, 4), (999_000, None), (1_000_000, 1)]


def test_old_samples_leave_on_the_left():
    assert points([JobRateSample(1000 - SHOWN_SECONDS, JobRates(1, 1, 1))], 1000, "done") == []


def test_what_moves_is_the_axis_and_three_lines():
    moving = moved(iter(SAMPLES), 1000)
    assert moving["xAxis"] == {"min": (1000 - LEAST_SHOWN_SECONDS) * 1000, "max": 1_000_000}
    assert [series["data"][-1][1] for series in moving["series"]] == [3, 2, 1]


def test_whole_chart_has_a_colour_and_a_name_for_each_line():
    whole = options(SAMPLES, 1000)
    assert [(series["name"], series["itemStyle"]["color"]) for series in whole["series"]] == [
        (f"{name}/s", colour) for name, colour in LINES
    ]
    assert whole["xAxis"]["max"] == 1_000_000 and whole["animation"] is False
