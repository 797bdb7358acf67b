"""What a running job knows of itself."""

import pytest

from keystead.errors import NotFound
from keystead.jobs import RunningJob, current_job
from keystead.jobs.context import running
from keystead.jobs.models import JobRecord


def test_outside_a_job_there_is_none() -> None:
    with pytest.raises(NotFound, match="here no job is running"):
        current_job()


def test_it_knows_name_attempt_and_whether_to_stop() -> None:
    stopping: list[bool] = []
    token = running.set(RunningJob(JobRecord("t.x", {}, 1.0, "u", 2), "u", "mail", lambda: bool(stopping)))
    try:
        job = current_job()
        assert (job.name, job.attempt, job.queue, job.stopping) == ("t.x", 3, "mail", False)
        stopping.append(True)
        assert job.stopping
    finally:
        running.reset(token)
