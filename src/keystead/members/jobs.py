"""The worker's door: jobs that count what was written, and those that write down what devices did."""

from collections.abc import Callable
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import Calendar, JobBook, Recurring
from keystead.members.attribution import Attribution
from keystead.members.counting import CONVERSIONS_JOB, CREATED_JOB, count_conversions, count_created
from keystead.members.visitor_jobs import ClickJob, LinkJob

LINKS_JOB: Final = "keystead.members.record_links"
CLICKS_JOB: Final = "keystead.members.record_clicks"


def register(
    book: JobBook, valkey: Valkey, attribution: Attribution, clock: Clock, *,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Add the room's jobs to the book."""
    links = LinkJob(valkey, clock, attribution, stopping=stopping)
    clicks = ClickJob(valkey, clock, attribution, stopping=stopping)

    async def created(sub: str, created_at: float) -> None:
        await count_created(valkey, sub, created_at)

    async def conversions(uid: str, unix_date: int, changes: list[list[Any]], verified: list[str]) -> None:
        rows = [(row, field, amount) for row, field, amount in changes]
        await count_conversions(valkey, uid, unix_date, rows, verified)

    async def record_links() -> None:
        await links.run()

    async def record_clicks() -> None:
        await clicks.run()

    book.register(CREATED_JOB, created)
    book.register(CONVERSIONS_JOB, conversions)
    book.register(LINKS_JOB, record_links)
    book.register(CLICKS_JOB, record_clicks)


def recurring() -> tuple[Recurring, ...]:
    """What the room wants done every five minutes: links first, so that clicks find them."""
    fifth = tuple(range(0, 60, 5))
    return (
        Recurring(LINKS_JOB, Calendar("UTC", minutes=fifth, seconds=(0,))),
        Recurring(CLICKS_JOB, Calendar("UTC", minutes=fifth, seconds=(5,))),
    )
