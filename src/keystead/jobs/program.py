"""The jobs of a program: everything in its modules that can be run, and when."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

from keystead.jobs.book import JobBook
from keystead.jobs.keys import Queue
from keystead.jobs.recurring import Recurring, RecurringList


@dataclass(frozen=True, slots=True)
class ProgramJobs:
    """What a program has to be run: its jobs by name, and its recurring lists, one for each queue."""

    book: JobBook = field(default_factory=JobBook)
    calendars: tuple[RecurringList, ...] = ()

    @classmethod
    def of(cls, modules: Sequence[ModuleType]) -> "ProgramJobs":
        """The jobs that these modules hold, alone or in books, and their recurring jobs, alone or in lists.

        Refuses two jobs of one name, and a recurring job that is in none of the books.
        """
        book = JobBook.of(*modules)
        for module in modules:
            book = book.merged(value for value in vars(module).values() if isinstance(value, JobBook))
        return cls(book, tuple(calendars_of(modules, book)))

    def queues(self, wanted: Sequence[str] = ("hot",)) -> tuple[str, ...]:
        """The queues to serve: those that are wanted, and those that the recurring jobs go to."""
        return tuple(dict.fromkeys([*wanted, *(calendar.queue.name or "hot" for calendar in self.calendars)]))

    def __len__(self) -> int:
        return len(self.book)


def calendars_of(modules: Sequence[ModuleType], book: JobBook) -> list[RecurringList]:
    """The recurring jobs that these modules hold: one list for each queue that they go to. Checked against the book."""
    values = [value for module in modules for value in vars(module).values()]
    lists = [value for value in values if isinstance(value, RecurringList)]
    # One that stands in a list and under a name of its own counts once, and goes where the list says.
    listed = {id(entry) for one in lists for entry in one}
    loose = {id(entry): entry for value in values for entry in (value if isinstance(value, list | tuple) else [value])
             if isinstance(entry, Recurring) and id(entry) not in listed}
    if loose:
        lists.append(RecurringList(loose.values()))
    calendars: list[RecurringList] = []
    for queue in dict.fromkeys(one.queue.name for one in lists):
        same = [one for one in lists if one.queue.name == queue]
        entries = {id(entry): entry for one in same for entry in one}
        calendars.append(RecurringList(entries.values(), version=max(one.version for one in same), queue=queue))
    for calendar in calendars:
        calendar.check(book)
    return [calendar for calendar in calendars if len(calendar)]


def queue_names(text: str) -> tuple[str, ...]:
    """Queues as settings list them, with commas; the one without a name is called hot."""
    return tuple(dict.fromkeys(Queue("" if name == "hot" else name).name or "hot"
                               for name in (part.strip() for part in text.split(",")) if name)) or ("hot",)
