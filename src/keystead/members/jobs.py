"""The worker's door: jobs that count what was written."""

from keystead.engine import Valkey
from keystead.jobs import JobBook
from keystead.members.counting import CREATED_JOB, count_created


def register(book: JobBook, valkey: Valkey) -> None:
    """Add the room's jobs to the book."""

    async def created(sub: str, created_at: float) -> None:
        await count_created(valkey, sub, created_at)

    book.register(CREATED_JOB, created)
