"""Finding people by what somebody who looks after them knows: their sub, an email address or a phone number."""

from typing import Final

from sqlalchemy import select

from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.members.addresses import folded_email, normal_email, normal_phone
from keystead.members.contact_tables import USER_EMAIL_ADDRESSES, USER_PHONE_NUMBERS
from keystead.members.tables import USERS
from keystead.store import Database

MOST_FOUND: Final = 20
MOST_CHARACTERS: Final = 300


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
