"""Finding people by what somebody who looks after them knows: their sub, an email address, a phone number, a name."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, or_, select

from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.members.addresses import folded_email, normal_email, normal_phone
from keystead.members.contact_tables import USER_EMAIL_ADDRESSES, USER_PHONE_NUMBERS
from keystead.members.tables import USERS
from keystead.store import Database

MOST_FOUND: Final = 20
MOST_CHARACTERS: Final = 300
# Names have no index: they are looked for among so many who joined last, so that the cost has an end.
NAMED_AMONG: Final = 50_000
MOST_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Listed:
    """Somebody in a list. ``number`` grows with each who joins; ``timezone``: what they said, None if nothing."""

    number: int
    sub: UserSub
    given_name: str
    family_name: str
    timezone: str | None
    created_at: float


async def find_people(database: Database, text: str) -> list[UserSub]:
    """Whose sub, address or number it is, oldest first; several people may share an address. Exact, up to spelling."""
    text = text.strip()
    if not text or len(text) > MOST_CHARACTERS or "\0" in text:
        return []
    wanted = select(USERS.c.sub).order_by(USERS.c.id).limit(MOST_FOUND)
    tries = [wanted.where(USERS.c.sub == text)]
    if (email := _email(text)) is not None:
        addresses = USER_EMAIL_ADDRESSES.c
        tries.append(wanted.where(USERS.c.id.in_(select(addresses.user_id).where(addresses.folded == email))))
    if (number := _number(text)) is not None:
        numbers = USER_PHONE_NUMBERS.c
        tries.append(wanted.where(USERS.c.id.in_(select(numbers.user_id).where(numbers.phone_number == number))))
    async with database.reading() as sql:
        for query in tries:
            if found := [UserSub(sub) for (sub,) in await sql.execute(query)]:
                return found
    return []


async def newest_people(database: Database, *, most: int = 50, before: int | None = None) -> list[Listed]:
    """Those who joined last, newest first; with ``before`` those who came before that number."""
    query = select(*_LISTED).order_by(USERS.c.id.desc()).limit(most)
    if before is not None:
        query = query.where(USERS.c.id < before)
    async with database.reading() as sql:
        return [Listed(*row) for row in await sql.execute(query)]


async def listed_people(database: Database, subs: list[UserSub]) -> list[Listed]:
    """These people, newest first; who does not exist is left out."""
    query = select(*_LISTED).where(USERS.c.sub.in_(subs)).order_by(USERS.c.id.desc())
    async with database.reading() as sql:
        return [Listed(*row) for row in await sql.execute(query)]


async def people_named(database: Database, text: str, *, most: int = MOST_FOUND) -> list[Listed]:
    """Who has a name that begins with each of the words, newest first, among the last fifty thousand who joined."""
    words = text.lower().split()
    if not words or len(words) > MOST_WORDS or len(text) > MOST_CHARACTERS or "\0" in text:
        return []
    newest = func.coalesce(select(func.max(USERS.c.id)).scalar_subquery(), 0)
    query = select(*_LISTED).where(USERS.c.id > newest - NAMED_AMONG).order_by(USERS.c.id.desc()).limit(most)
    for word in words:
        query = query.where(or_(*(func.lower(column).startswith(word, autoescape=True)
                                  for column in (USERS.c.given_name, USERS.c.family_name))))
    async with database.reading() as sql:
        return [Listed(*row) for row in await sql.execute(query)]


async def count_people(database: Database) -> int:
    """How many there are."""
    async with database.reading() as sql:
        return int(await sql.scalar(select(func.count()).select_from(USERS)) or 0)


_LISTED: Final = (
    USERS.c.id, USERS.c.sub, USERS.c.given_name, USERS.c.family_name, USERS.c.timezone, USERS.c.created_at,
)


def _email(text: str) -> str | None:
    try:
        return folded_email(normal_email(text))
    except Invalid:
        return None


def _number(text: str) -> str | None:
    try:
        # Whoever copies a number out of an address bar may have lost its leading sign.
        return normal_phone(text if text.startswith("+") else f"+{text}")
    except Invalid:
        return None
