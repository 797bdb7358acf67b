"""Recurring jobs: which job runs when, with which arguments, and what becomes of runs that nobody was there for.

Every process that serves the list declares the same one; ``recurring_loop`` keeps to it.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from keystead.errors import DeclarationError, Invalid
from keystead.jobs.book import Job, JobBook
from keystead.jobs.calendar import AnyOf, Calendar, When, newest_runs
from keystead.jobs.keys import Queue
from keystead.jobs.records import encode_record

MOST_RUNS = 1000
MOST_VERSION = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Missed:
    """What becomes of runs that were due while no loop was there.

    Of the runs that are due, the newest ``most`` are queued, and of these only what is at most ``late_seconds`` late.
    """

    most: int = 1
    late_seconds: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST_RUNS or (self.late_seconds is not None and not self.late_seconds > 0):
            raise DeclarationError(f"missed runs need most from 1 to {MOST_RUNS} and late_seconds > 0; got {self}")

    @classmethod
    def skip(cls, late_seconds: float = 60.0) -> "Missed":
        """A run that is later than this is dropped."""
        return cls(1, late_seconds)

    @classmethod
    def run_all(cls, up_to: int = 100) -> "Missed":
        """Every missed run is made up for, the newest ``up_to`` at most."""
        return cls(up_to)


RUN_ONCE = Missed()


@dataclass(frozen=True)
class Recurring:
    """A job and when it runs.

    However many runs were missed, one makes up for them unless ``missed`` says otherwise. ``due_argument`` names an
    argument in which the job is told the unix time for which it runs, so that it can tell runs apart. Name, arguments
    and calendar make up the identity of the entry; they are checked here, where they are written.
    """

    job: Job[..., Any] | str
    when: When
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    missed: Missed = RUN_ONCE
    due_argument: str = ""
    hash: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.when, Calendar | AnyOf):
            raise DeclarationError(f"recurring {self.name}: when must be a Calendar; for cron text, cron(text, zone)")
        if not all(isinstance(name, str) for name in self.kwargs):
            raise DeclarationError(f"recurring {self.name}: arguments travel by name, so names must be text")
        if self.due_argument in self.kwargs:
            raise DeclarationError(f"recurring {self.name}: {self.due_argument} is given, so it cannot be the due time")
        if isinstance(self.job, Job):
            self.check(self.job)
        parts = [self.name, sorted(self.kwargs.items()), self.when.spelling(), self.due_argument]
        try:
            raw = msgspec.json.encode(parts, order="deterministic")
            # What is declared stays as it was, whatever becomes of the mapping that was given.
            object.__setattr__(self, "kwargs", msgspec.json.decode(msgspec.json.encode(dict(self.kwargs))))
        except (TypeError, ValueError, OverflowError) as error:
            raise DeclarationError(f"recurring {self.name}: its arguments cannot be written as JSON: {error}") from None
        object.__setattr__(self, "hash", stable_hash(raw))

    @property
    def name(self) -> str:
        return self.job.name if isinstance(self.job, Job) else self.job

    def check(self, job: Job[..., Any]) -> None:
        """Refuse arguments that the job does not take, and a lack of those it needs."""
        try:
            job.check(self._arguments(0))
        except Invalid as error:
            raise DeclarationError(f"recurring {error}") from None

    def due_runs(self, due_at: float, now: float) -> list[int]:
        """The runs to be queued at ``now`` for an entry that has waited for ``due_at``, oldest first."""
        most, late = self.missed.most, self.missed.late_seconds
        earliest = due_at if late is None else max(due_at, now - late)
        runs = newest_runs(self.when, max(due_at, math.ceil(earliest) - 1), now, most)
        if due_at >= earliest and len(runs) < most:
            runs.insert(0, int(due_at))
        return runs

    def record(self, due_at: int, now: float) -> bytes:
        """The bytes of one run, ready for the queue. Its uid says which run of which entry it is."""
        return encode_record(self.name, self._arguments(due_at), now, uid=f"rjob_{self.hash}_{due_at}")

    def _arguments(self, due_at: int) -> dict[str, Any]:
        return {**self.kwargs, **({self.due_argument: due_at} if self.due_argument else {})}


class RecurringList:
    """Every recurring job of a program, or of the part of it that has a queue of its own.

    Runs go to ``queue``. One list is in force for each: programs that share a server and are not to replace the lists
    of one another name different queues. ``version`` is a number that grows with each deployment: a loop with a smaller
    one never replaces the list of a loop with a larger one. With equal numbers the loop that began last has its way.
    """

    def __init__(self, jobs: Iterable[Recurring] = (), *, version: int = 0, queue: str = "") -> None:
        if type(version) is not int or not 0 <= version <= MOST_VERSION:
            raise DeclarationError(f"the version of recurring jobs is a whole number from 0 to {MOST_VERSION}")
        self.version = version
        self.queue = Queue(queue)
        self.by_hash: dict[str, Recurring] = {}
        for one in jobs:
            other = self.by_hash.setdefault(one.hash, one)
            if other is not one:
                raise DeclarationError(
                    f"recurring {one.name} is declared twice with the same arguments and calendar ({one.when})"
                )
        self.hash = stable_hash("\n".join(self.by_hash).encode())

    def __iter__(self) -> Iterator[Recurring]:
        return iter(self.by_hash.values())

    def __len__(self) -> int:
        return len(self.by_hash)

    def check(self, book: JobBook) -> None:
        """Refuse entries whose job is not in the book, or does not take their arguments."""
        for one in self:
            job = book.get(one.name)
            if job is None:
                raise DeclarationError(f"recurring {one.name}: there is no such job in the book")
            one.check(job)


def stable_hash(raw: bytes) -> str:
    """64 bits as a decimal number, the same on every machine. Text, since not every program can count that far."""
    return str(int.from_bytes(hashlib.sha256(raw).digest()[:8], "big"))
