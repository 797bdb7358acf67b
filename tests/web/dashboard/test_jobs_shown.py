"""Jobs and times as people read them."""

import pytest

from keystead.jobs import JobRecord
from keystead.jobs.inspection_views import JobView
from keystead.web.dashboard.jobs_shown import (
    LONGEST_JSON,
    ago,
    clock_time,
    cut,
    due,
    job_address,
    job_cell,
    moment,
    number,
    plural,
    pretty,
    state_chip,
)


def view(uid="u1", name="shop.greet"):
    return JobView("queued", "hot", JobRecord(name, {}, 1.0, uid), b"")


def test_address_survives_any_uid():
    assert job_address("a/b c?") == "/jobs/a%2Fb%20c%3F"


def test_job_leads_to_its_page_and_is_only_text():
    assert 'href="/jobs/u1"' in job_cell(view()) and "shop.greet" in job_cell(view())
    hostile = job_cell(view('"><b>', "<i>"))
    assert "<b>" not in hostile and "<i>" not in hostile
    assert "href" not in job_cell(view("")) and "without a uid" in job_cell(view(""))
    assert "not a job: &lt;x&gt;" in job_cell(JobView("queued", "hot", None, b"?", problem="<x>"))


@pytest.mark.parametrize(("at", "text"), [
    (None, "\N{EN DASH}"), (1061, "in 1 min 1 s"), (1000.4, "now"), (997, "now"), (900, "1 min 40 s overdue"),
])
def test_when_something_is_due(at, text):
    assert due(at, 1000) == text


def test_a_fast_clock_does_not_make_seconds_look_like_minutes():
    assert due(1000 - 400, 1000, speed=144) == "now"
    assert due(1000 - 900, 1000, speed=144) == "15 min overdue"


def test_moments():
    assert ago(None, 1000) == "\N{EN DASH}" and ago(940, 1000) == "1 min"
    assert moment(0) == "" and moment(1_800_000_000) == "2027-01-15 08:00:00 UTC"
    assert moment(1e30) == "1e+30" and clock_time(1e30) == "1e+30"
    assert clock_time(1_800_000_000) == "08:00:00"


def test_long_things_are_cut_and_say_so():
    assert cut("abc", 3) == "abc" and cut("abcd", 3) == "ab…"
    assert pretty({"a": "ä"}) == '{\n  "a": "ä"\n}'
    long = pretty("x" * (LONGEST_JSON + 100))
    assert len(long) < LONGEST_JSON + 50 and long.endswith("102 more characters")


def test_words_and_numbers():
    assert plural(1, "job") == "1 job" and plural(0, "job") == "0 jobs" and plural(2, "entry", "entries") == "2 entries"
    assert "zero" in number(0, "bad") and "bad" in number(3, "bad") and ">3<" in number(3)
    assert ">failed<" in state_chip("dead") and "good" in state_chip("running")
