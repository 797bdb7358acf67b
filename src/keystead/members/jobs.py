"""The worker's door: jobs that count what was written, and those that write down what devices did."""

from collections.abc import Callable
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.jobs import Calendar, JobBook, Recurring
from keystead.members.attribution import Attribution
from keystead.members.contact_changes import COUNT_CONTACTS_JOB, ERASED_JOB
from keystead.members.counting import CONVERSIONS_JOB, CREATED_JOB, count_contacts, count_conversions, count_created
from keystead.members.keys import TIMEZONE_SAID
from keystead.members.push_tokens import REGISTER_TOKEN_JOB, PushTokens
from keystead.members.users import LEFT_JOB, Users
from keystead.members.visitor_jobs import ClickJob, LinkJob
from keystead.telemetry import logger

LINKS_JOB: Final = "keystead.members.record_links"
CLICKS_JOB: Final = "keystead.members.record_clicks"

_log = logger("members")


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

    async def contacts(uid: str, changed_at: float, methods: list[list[Any]], tokens: dict[str, int]) -> None:
        await count_contacts(valkey, uid, changed_at, [(event, how, amount) for event, how, amount in methods], tokens)

    async def erased(user_sub: str) -> None:
        await TIMEZONE_SAID.at(user_sub).delete(valkey)

    async def record_links() -> None:
        await links.run()

    async def record_clicks() -> None:
        await clicks.run()

    book.register(CREATED_JOB, created)
    book.register(CONVERSIONS_JOB, conversions)
    book.register(COUNT_CONTACTS_JOB, contacts)
    book.listen(ERASED_JOB, erased)
    book.register(LINKS_JOB, record_links)
    book.register(CLICKS_JOB, record_clicks)


def register_leaving(book: JobBook, users: Users) -> None:
    """What happens when somebody's account goes: every room that listens lets go of them, then their row goes."""

    async def left(user_sub: str) -> None:
        await book.jobs[ERASED_JOB](user_sub=user_sub)
        await users.remove(UserSub(user_sub))

    book.register(LEFT_JOB, left)


def register_tokens(book: JobBook, tokens: PushTokens) -> None:
    """Add the job that registers devices."""

    async def register_token(user_sub: str, expo_push_token: str, platform: str) -> None:
        try:
            await tokens.register(UserSub(user_sub), expo_push_token, platform)
        except NotFound:  # somebody who left meanwhile; trying again brings nobody back
            _log.info("a device of somebody who is not there any more")

    book.register(REGISTER_TOKEN_JOB, register_token)


def recurring() -> tuple[Recurring, ...]:
    """What the room wants done every five minutes: links first, so that clicks find them."""
    fifth = tuple(range(0, 60, 5))
    return (
        Recurring(LINKS_JOB, Calendar("UTC", minutes=fifth, seconds=(0,))),
        Recurring(CLICKS_JOB, Calendar("UTC", minutes=fifth, seconds=(5,))),
    )
