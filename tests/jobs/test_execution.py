"""Running one job."""

import asyncio
import threading

import pytest

from keystead.jobs import GiveUp, Job, RunningJob, current_job
from keystead.jobs.execution import ERROR_CHARACTERS, Execution, TooLong, told
from keystead.jobs.models import JobRecord


def context(**kwargs: object) -> RunningJob:
    return RunningJob(JobRecord("t.x", kwargs, 1.0), "u", "", lambda: False)


async def test_time_is_bounded_and_the_jobs_own_timeout_is_not_mistaken() -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    async def own() -> None:
        raise TimeoutError("the provider did not answer")

    execution = Execution(1)
    with pytest.raises(TooLong, match=r"longer than 0\.02 s"):
        await execution.run(Job(slow, name="t.slow"), context(), 0.02)
    with pytest.raises(TimeoutError, match="provider"):
        await execution.run(Job(own, name="t.own"), context(), 60)
    execution.close()


async def test_wrong_arguments_are_told_apart_from_a_type_error_inside() -> None:
    async def takes(n: int) -> int:
        return n + "x"

    execution = Execution(1)
    with pytest.raises(GiveUp, match="missing a required argument: 'n'"):
        await execution.run(Job(takes, name="t.takes"), context(), 0)
    with pytest.raises(TypeError, match="unsupported operand"):
        await execution.run(Job(takes, name="t.takes"), context(n=1), 0)
    execution.close()


async def test_a_thread_knows_its_job() -> None:
    execution = Execution(1)
    found = await execution.run(Job(lambda: current_job().uid, name="t.thread"), context(), 0)
    assert found == "u"
    execution.close()


def test_an_error_is_one_line_of_bounded_length() -> None:
    assert told(ValueError("a\n  b")) == "ValueError: a b" and told(KeyError()) == "KeyError"
    assert len(told(ValueError("x" * 5000))) == ERROR_CHARACTERS


def test_an_error_that_is_no_text_is_told_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    assert told(Mute()) == "Mute (it cannot be shown as text)"
    assert told(ValueError("no file \udc80")) == "ValueError: no file ?"


async def test_the_time_of_a_job_begins_with_its_thread() -> None:
    """One thread, kept busy for longer than the second one may take."""
    execution, gate = Execution(1), threading.Event()
    first = asyncio.create_task(execution.run(Job(gate.wait, name="t.first"), context(), 0))
    second = asyncio.create_task(execution.run(Job(lambda: "done", name="t.second"), context(), 1.0))
    await asyncio.sleep(1.5)
    gate.set()
    assert await first is True and await second == "done"
    execution.close()
