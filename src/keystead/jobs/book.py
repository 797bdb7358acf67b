"""The job book: which functions are jobs, under which name, and how each is to be run.

A name in a record is looked up here and never imported, so nobody who can write to a queue chooses what code runs.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from keystead.errors import DeclarationError, Invalid
from keystead.jobs.keys import RATE_AHEAD_SECONDS
from keystead.jobs.retry import DEFAULT, Retry

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Category:
    """What kind of worker may run a job."""

    id: int
    name: str


HIGH_RESOURCE_COST = Category(1, "HIGH_RESOURCE_COST")
LOW_RESOURCE_COST = Category(2, "LOW_RESOURCE_COST")


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``most`` runs of a job begin in any ``seconds``, over all workers; others wait for their turn."""

    most: int
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.most < 1 or self.seconds <= 0:
            raise DeclarationError(f"a rate needs most >= 1 and seconds > 0; got {self}")
        if self.seconds / self.most > RATE_AHEAD_SECONDS:
            raise DeclarationError(f"a rate is at least one run a day; let a calendar start what is rarer. Got {self}")


class Job(Generic[P, R]):
    """A function that can be queued. Calling it runs it here and now, as before."""

    def __init__(
        self, function: Callable[P, R], *, name: str = "", category: Category = LOW_RESOURCE_COST,
        retry: Retry = DEFAULT, timeout_seconds: float = 0.0, keep_seconds: float = 0.0, rate: Rate | None = None,
        says_done: bool = False, progress: bool = False,
    ) -> None:
        self.function = function
        self.name = name or _name_of(function)
        self.category = category
        self.retry = retry
        self.timeout_seconds = timeout_seconds
        self.keep_seconds = keep_seconds
        self.rate = rate
        self.says_done = says_done
        self.progress = progress
        self.is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)
        if ":" in self.name or not self.name:
            raise DeclarationError(f"a job's name is a dotted path such as runners.example, got {self.name!r}")
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.POSITIONAL_ONLY or parameter.kind is parameter.VAR_POSITIONAL:
                raise DeclarationError(f"job {self.name}: arguments travel by name, {parameter.name} cannot")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Job({self.name})"

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def check(self, kwargs: dict[str, Any]) -> None:
        """Refuse arguments that the function does not take, and a lack of those it needs."""
        try:
            self.signature.bind(**kwargs)
        except TypeError as error:
            raise Invalid(f"job {self.name}: {error}; it takes {self.signature}") from None


@overload
def job(function: Callable[P, R], /) -> Job[P, R]: ...
@overload
def job(
    *, name: str = ..., category: Category = ..., retry: Retry = ..., timeout_seconds: float = ...,
    keep_seconds: float = ..., rate: Rate | None = ..., says_done: bool = ..., progress: bool = ...,
) -> Callable[[Callable[P, R]], Job[P, R]]: ...
def job(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a job of a function, async or not.

    ``name`` is module and function unless given. ``category`` says which workers may run it. ``timeout_seconds`` bounds
    one try. ``keep_seconds`` keeps its state and result so long after its end. ``rate`` bounds how many begin.
    ``says_done`` publishes on ``ps:job:{job_uid}`` when a run with the argument ``job_uid`` ends. ``progress`` tells of
    begin and end to whoever watches.
    """
    if function is not None:
        return Job(function)
    return lambda found: Job(found, **options)


def _name_of(function: Callable[..., object]) -> str:
    module, name = function.__module__, getattr(function, "__qualname__", "")
    if "<" in name:
        raise DeclarationError(f"{name} has no name of its own: give the job one with @job(name=...)")
    if module == "__main__":
        # The program that queues is often started as a script, the worker that imports it is not.
        file = getattr(sys.modules["__main__"], "__file__", None)
        module = Path(file).stem if file else module
    return f"{module}.{name}"


@dataclass(slots=True)
class JobBook:
    """Jobs by name."""

    jobs: dict[str, Job[..., Any]] = field(default_factory=dict)
    _listeners: dict[str, list[Callable[..., Awaitable[None]]]] = field(default_factory=dict)

    @classmethod
    def of(cls, *sources: ModuleType | Job[..., Any]) -> "JobBook":
        """A book of these jobs, and of every job that these modules hold."""
        book = cls()
        for source in sources:
            if isinstance(source, Job):
                book.add(source)
            else:
                found = dict.fromkeys(value for value in vars(source).values() if isinstance(value, Job))
                book.add(*found)
        return book

    def add(self, *jobs: Job[..., Any]) -> None:
        for one in jobs:
            if self.jobs.setdefault(one.name, one) is not one:
                raise DeclarationError(f"two jobs are named {one.name}: give one of them another name")

    def register(self, name: str, function: Callable[..., Awaitable[Any]], **options: Any) -> Job[..., Any]:
        """Add a bound method or a function made on the spot, under a name; for the ``jobs.py`` of a room."""
        found: Job[..., Any] = Job(function, name=name, **options)
        self.add(found)
        return found

    def listen(self, name: str, function: Callable[..., Awaitable[None]]) -> None:
        """Answer to what another room announces under this name, beside others who do.

        All are told one after another. If one fails, the job is tried again, and those before it hear the same twice.
        """
        heard_by = self._listeners.get(name)
        if heard_by is None:
            heard_by = self._listeners[name] = []

            async def tell(**kwargs: Any) -> None:
                for listener in heard_by:
                    await listener(**kwargs)

            self.register(name, tell)
        heard_by.append(function)

    def get(self, name: str) -> Job[..., Any] | None:
        return self.jobs.get(name)

    def categories(self) -> tuple[Category, ...]:
        """Every category that a job of the book has, by number."""
        return tuple(sorted({one.category for one in self.jobs.values()}, key=lambda category: category.id))

    def __iter__(self) -> Iterator[Job[..., Any]]:
        return iter(self.jobs.values())

    def __contains__(self, name: str) -> bool:
        return name in self.jobs

    def __len__(self) -> int:
        return len(self.jobs)

    def merged(self, others: Iterable["JobBook"]) -> "JobBook":
        """One book with the jobs of all."""
        book = JobBook(dict(self.jobs))
        for other in others:
            book.add(*other)
        return book
