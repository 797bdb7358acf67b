"""The worker's door: what messages are followed by, and what moves links and clicks to the database."""

from collections.abc import Callable
from typing import Final

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.jobs import Calendar, JobBook, Recurring, Work
from keystead.messaging.links.delayed_clicks import DelayedClicks
from keystead.messaging.links.leaks import Leaks
from keystead.messaging.links.links import ABANDON_JOB, PERSIST_JOB, Links
from keystead.messaging.links.models import DEFAULTS
from keystead.messaging.links.persister import Persister
from keystead.settings import LinksSettings
from keystead.store import Database

STORE_LINKS_JOB: Final = "keystead.links.store_links"
STORE_CLICKS_JOB: Final = "keystead.links.store_clicks"
FIND_LEAKS_JOB: Final = "keystead.links.find_leaks"


def register(
    book: JobBook, links: Links, valkey: Valkey, database: Database, clock: Clock, *,
    settings: LinksSettings = DEFAULTS, stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Add the room's jobs to the book."""
    persister = Persister(valkey, clock, database, settings=settings, stopping=stopping)
    delayed = DelayedClicks(valkey, clock, database, settings=settings, stopping=stopping)
    leaks = Leaks(valkey, clock, database, settings=settings, stopping=stopping)

    async def persist_links(codes: list[str]) -> None:
        await links.persist_all(codes)

    async def abandon_links(codes: list[str]) -> None:
        await links.abandon_all(codes)

    async def store_links() -> None:
        await persister.run()

    async def store_clicks() -> None:
        await delayed.run()

    async def find_leaks() -> None:
        await leaks.run()

    book.register(PERSIST_JOB, persist_links)
    book.register(ABANDON_JOB, abandon_links)
    book.register(STORE_LINKS_JOB, store_links)
    book.register(STORE_CLICKS_JOB, store_clicks)
    book.register(FIND_LEAKS_JOB, find_leaks)


def recurring() -> tuple[Recurring, ...]:
    """What is done by the calendar, also where no crew works all the time."""
    return (
        Recurring(STORE_LINKS_JOB, Calendar(LOS_ANGELES, seconds=(0,))),
        Recurring(STORE_CLICKS_JOB, Calendar(LOS_ANGELES, seconds=(0,))),
        Recurring(FIND_LEAKS_JOB, Calendar(LOS_ANGELES, minutes=(0, 15, 30, 45), seconds=(0,))),
    )


def crew(
    valkey: Valkey, database: Database, clock: Clock, *, settings: LinksSettings = DEFAULTS,
    stopping: Callable[[], bool] = lambda: False,
) -> list[Work]:
    """What goes on all the time, in any number of processes."""
    return [
        Persister(valkey, clock, database, settings=settings, stopping=stopping),
        DelayedClicks(valkey, clock, database, settings=settings, stopping=stopping),
        Leaks(valkey, clock, database, settings=settings, stopping=stopping),
    ]
