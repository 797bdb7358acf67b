"""What of a program's modules is run."""

from types import ModuleType

import pytest

from keystead.errors import KeysteadError
from keystead.jobs import JobBook, ProgramJobs, Recurring, RecurringList, cron, job, queue_names


def module_with(**values: object) -> ModuleType:
    module = ModuleType("shop")
    vars(module).update(values)
    return module


@job
async def greet(name: str = "") -> None:
    """Says hello."""


@job
async def count() -> None:
    """Counts."""


def test_jobs_are_found_alone_and_in_books() -> None:
    program = ProgramJobs.of([module_with(greet=greet), module_with(book=JobBook.of(count), again=greet)])
    assert {one.name for one in program.book} == {greet.name, count.name}
    assert len(program) == 2 and program.calendars == ()
    assert not len(ProgramJobs.of([module_with(nothing=1)]))


def test_recurring_lists_go_to_their_queues_which_are_served_too() -> None:
    hourly = Recurring(greet, cron("0 * * * *", "UTC"))
    program = ProgramJobs.of([module_with(
        greet=greet, count=count, hourly=hourly,
        nightly=RecurringList([Recurring(count, cron("0 3 * * *", "UTC"))], queue="nightly"),
    )])
    assert {calendar.queue.name: len(calendar) for calendar in program.calendars} == {"": 1, "nightly": 1}
    assert set(program.queues(("hot",))) == {"hot", "nightly"}


def test_recurring_job_that_no_book_has_is_refused() -> None:
    with pytest.raises(KeysteadError, match="count"):
        ProgramJobs.of([module_with(greet=greet, later=Recurring(count, cron("0 3 * * *", "UTC")))])


@pytest.mark.parametrize(("text", "names"), [
    ("hot", ("hot",)), ("", ("hot",)), ("mail, hot ,mail", ("mail", "hot")),
])
def test_queues_are_read_from_a_setting(text: str, names: tuple[str, ...]) -> None:
    assert queue_names(text) == names
