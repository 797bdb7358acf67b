"""The job book: names, arguments, categories."""

import types

import pytest

from keystead.errors import DeclarationError, Invalid
from keystead.jobs import HIGH_RESOURCE_COST, LOW_RESOURCE_COST, JobBook, Rate, Retry, job


@job
async def greet(name: str, times: int = 1) -> str:
    return f"hello {name}" * times


@job(name="runners.shout", category=HIGH_RESOURCE_COST, retry=Retry(tries=2))
def shout(*, words: str) -> str:
    return words.upper()


async def test_a_job_can_still_be_called() -> None:
    assert await greet("Ada") == "hello Ada"
    assert shout(words="a") == "A"


def test_name_is_module_and_function_unless_given() -> None:
    assert greet.name == f"{__name__}.greet" and shout.name == "runners.shout"
    assert greet.is_async and not shout.is_async


def test_book_collects_the_jobs_of_a_module() -> None:
    module = types.ModuleType("sample")
    vars(module).update(greet=greet, again=greet, shout=shout, other=len)
    book = JobBook.of(module)
    assert [one.name for one in book] == [greet.name, "runners.shout"]
    assert book.get("runners.shout") is shout and book.get("os.system") is None
    assert book.categories() == (HIGH_RESOURCE_COST, LOW_RESOURCE_COST)
    assert "runners.shout" in book and len(book) == 2


def test_two_jobs_of_one_name_are_refused() -> None:
    @job(name="runners.shout")
    def other() -> None: ...

    with pytest.raises(DeclarationError, match=r"two jobs are named runners\.shout"):
        JobBook.of(shout, other)
    with pytest.raises(DeclarationError, match="two jobs"):
        JobBook.of(shout).merged([JobBook.of(other)])


def test_arguments_are_checked_against_the_function() -> None:
    greet.check({"name": "Ada"})
    with pytest.raises(Invalid, match=r"missing a required argument: 'name'.*it takes \(name: str"):
        greet.check({})
    with pytest.raises(Invalid, match="unexpected keyword argument 'nam'"):
        greet.check({"name": "Ada", "nam": 1})


def test_what_cannot_travel_by_name_is_refused() -> None:
    with pytest.raises(DeclarationError, match="arguments travel by name, names cannot"):
        job(lambda_free)
    with pytest.raises(DeclarationError, match="has no name of its own"):
        job(lambda: None)
    with pytest.raises(DeclarationError, match="dotted path"):
        job(name="jobs:hot")(shout.function)


def lambda_free(*names: str) -> None: ...


def test_a_rate_needs_sense() -> None:
    with pytest.raises(DeclarationError, match="most >= 1"):
        Rate(0)
    assert Rate(5, 60).seconds == 60


def test_a_method_is_registered_under_a_name() -> None:
    class Sender:
        async def send(self, uid: str) -> str:
            return uid

    book = JobBook()
    registered = book.register("sms.send", Sender().send, retry=Retry(tries=3))
    assert book.get("sms.send") is registered and registered.retry.tries == 3


async def test_an_announcement_is_heard_by_all_who_listen():
    book, heard = JobBook(), []

    async def first(sub: str) -> None:
        heard.append(("first", sub))

    async def second(sub: str) -> None:
        heard.append(("second", sub))

    book.listen("members.erased", first)
    book.listen("members.erased", second)
    await book.jobs["members.erased"](sub="a")
    assert heard == [("first", "a"), ("second", "a")]


async def test_an_announcement_is_no_name_for_another_job():
    book = JobBook()

    async def work() -> None: ...

    book.register("told", work)
    with pytest.raises(DeclarationError, match="two jobs are named told"):
        book.listen("told", work)
