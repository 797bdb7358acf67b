"""The last run of every job."""

from keystead.stats.charts_live import RunView
from keystead.web.dashboard.stats_runs import (
    LONG_SECONDS,
    counters_html,
    is_running,
    never_html,
    run_row,
    shown_took,
    summary,
)

DONE = RunView("sms:send_job", "the last run of the job that sends texts; running_time in seconds", 900.0, 903.2, 3.2,
               "list_exhausted", {"attempted": 1234, "failed": 0})
GOING = RunView("sms:stale_job", "the last run", 990.0, 800.0, 1.0, "signal", {"found": 0})
NEVER = RunView("mail:send_job", "the last run")
BROKEN = RunView("odd:job", "the last run", problem="stats:odd:job does not decode")


def test_run_that_started_after_the_last_one_ended_is_running():
    assert is_running(GOING) and not is_running(DONE) and not is_running(NEVER)
    assert is_running(RunView("a", "", 990.0))


def test_row_says_when_how_long_why_and_what():
    name, started, took, stopped, counted = run_row(DONE, 1000.0).cells
    assert "the job that sends texts" in name and "the last run" not in name and "seconds" not in name
    assert (started, took) == ("1 min 40 s ago", "3.2 s") and "all done" in stopped and "1,234" in counted


def test_running_one_counts_up_and_one_that_is_silent_for_long_may_have_died():
    _, _, took, stopped, _ = run_row(GOING, 1000.0).cells
    assert took == "10.0 s" and ">running<" in stopped
    assert "or died" in run_row(GOING, 990.0 + LONG_SECONDS + 1).cells[3]


def test_work_takes_real_time_and_a_day_is_a_date():
    counters = {"start_unix_date": 20_774, "pairs": 20_774}
    run = RunView("a", "", 900.0, 1044.0, 144.0, "list_exhausted", counters=counters)
    _, _, took, _, counted = run_row(run, 1100.0, 144.0).cells
    assert took == "1.0 s" and "2026-11-17" in counted and "20,774" in counted


def test_record_that_cannot_be_read_is_told():
    assert "does not decode" in run_row(BROKEN, 1000.0).cells[4]


def test_reason_of_another_program_is_shown_as_it_is():
    odd = RunView("a", "", 900.0, 901.0, 1.0, "<full moon>")
    assert "&lt;full moon&gt;" in run_row(odd, 1000.0).cells[3]


def test_zeros_are_only_named():
    assert "none: failed" in counters_html(DONE) and "nothing" in counters_html(GOING)


def test_those_that_never_ran_are_listed_quietly():
    assert "mail:" in never_html([DONE, NEVER, BROKEN]) and "odd" not in never_html([DONE, NEVER, BROKEN])
    assert never_html([DONE]) == ""
    assert summary([DONE, GOING, NEVER]).startswith("2 of 3 jobs that keep count have run, 1 of them is running now.")
    assert "none of them is running" in summary([DONE])


def test_durations():
    assert [shown_took(seconds) for seconds in (None, 0.0424, 3.21, 754)] == ["\N{EN DASH}", "42 ms", "3.2 s",
                                                                            "12 min 34 s"]
