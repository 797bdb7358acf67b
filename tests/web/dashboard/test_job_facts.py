"""What is known of one job."""

import pytest

from keystead.jobs import EndedJob, JobRecord
from keystead.jobs.inspection_views import JobFound, JobView
from keystead.jobs.models import JobOptions, JobState
from keystead.web.dashboard.job_facts import (
    error_of,
    facts_html,
    is_ended,
    kwargs_html,
    name_of,
    result_html,
    says,
    state_of,
)

RECORD = JobRecord("shop.greet", {"name": "Ada <3"}, 900.0, "u1",
                   options=JobOptions(keep_seconds=60, after=("first/1",), batch="<b>", tries=3))


def found(place=None, status=None, **facts):
    view = None if place is None else JobView(place, "hot", RECORD, b"", error="KeyError: 1" if place == "dead" else "",
                                              dead_at=990.0 if place == "dead" else None)
    state = None if status is None else JobState("shop.greet", status, 900.0, **facts)
    return JobFound("u1", "hot", state, view)


@pytest.mark.parametrize(("one", "state", "ended"), [
    (found("queued"), "queued", False), (found("running", "running"), "running", False),
    (found(None, "succeeded"), "succeeded", True), (found("dead", "failed"), "dead", True),
    (found("delayed", "retrying"), "retrying", False), (found(), "ended", True),
])
def test_state_is_one_word_that_is_explained(one, state, ended):
    assert state_of(one) == state and is_ended(one) is ended and says(one)


def test_name_and_error_come_from_wherever_they_are_known():
    assert name_of(found(), RECORD) == "shop.greet" == name_of(found(None, "succeeded"), None)
    assert name_of(None, None) == ""
    assert error_of(found("dead")) == "KeyError: 1" and error_of(found(None, "failed", error="no")) == "no"


def test_facts_tell_times_tries_and_wishes():
    shown = facts_html(found("running", "running", attempts=2, started_at=940.0, worker="one<"), RECORD, 1000.0)
    assert "1 min 40 s ago" in shown and "1 min ago" in shown and "one&lt;" in shown and "<dd>2</dd>" in shown
    assert 'href="/jobs/first%2F1"' in shown and "&lt;b&gt;" in shown and "Most tries" in shown
    assert "Begun" not in facts_html(found("queued"), RECORD, 1000.0)


def test_how_long_it_took():
    for seconds, text in ((0.25, "250 ms"), (2.5, "2.5 s"), (90, "1 min 30 s")):
        shown = facts_html(found(None, "succeeded", started_at=900.0, finished_at=900.0 + seconds), None, 1000.0)
        assert f"<dd>{text}</dd>" in shown


def test_job_of_which_no_state_is_kept_is_told_from_those_that_ended_lately():
    job = EndedJob("u1", "shop.greet", "mail", "failed", 990.0, 3, "one", 900.0, 0.25, "KeyError")
    one = JobFound("u1", "mail", None, None, ended=job)
    assert (state_of(one), name_of(one, None), error_of(one)) == ("failed", "shop.greet", "KeyError") and is_ended(one)
    shown = facts_html(one, None, 1000.0)
    for words in ("what it gave is not kept", "mail", "one", "10 s ago", "250 ms", "<dd>3</dd>"):
        assert words in shown
    never = JobFound("u1", "hot", None, None, ended=EndedJob("u1", "shop.greet", "hot", "cancelled", 990.0, 0))
    assert "Took" not in facts_html(never, None, 1000.0) and "called off" in says(never)


def test_arguments_and_result_are_masked_until_revealed():
    assert "Ada" not in kwargs_html(RECORD, revealed=False) and "name" in kwargs_html(RECORD, revealed=False)
    assert "Ada &lt;3" in kwargs_html(RECORD, revealed=True)
    ended = found(None, "succeeded", result='{"to": "Ada"}')
    assert "Ada" not in result_html(ended, revealed=False) and "Ada" in result_html(ended, revealed=True)
    assert result_html(found("queued"), revealed=True) == ""
    assert "not json" in result_html(found(None, "succeeded", result="not json"), revealed=True)


def test_what_is_not_known_says_so():
    assert "Not known" in kwargs_html(None, revealed=True)
    assert "takes none" in kwargs_html(JobRecord("a", {}, 1.0), revealed=True)
