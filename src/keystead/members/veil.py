"""Addresses that must not be written to, of people who were forgotten: a keyed hash stands for each.

So the wish outlives the address: whoever has the address can be asked about, and from the list alone nobody can tell
whose it was. An address that somebody gives again is spelled out again.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Table, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.members.contact_tables import SUPPRESSED_EMAILS, SUPPRESSED_PHONE_NUMBERS, UNSUBSCRIBED_EMAILS_LOG

STEP: Final = 1000
_PREFIX: Final = "veiled:"  # begins no address and no number


class Veil:
    """Hashes with one secret, that of the installation. With another one, what was veiled is not found."""

    def __init__(self, secret: bytes = b"") -> None:
        self._key = hashlib.blake2b(secret, person=b"keystead veil").digest()

    def of(self, key: str) -> str:
        """What stands for an address: ``key`` is what addresses are compared by."""
        return _PREFIX + hashlib.blake2b(key.encode(), key=self._key, digest_size=32).hexdigest()

    async def draw(self, sql: AsyncConnection, emails: Iterable[str], phones: Iterable[str]) -> None:
        """Put hashes in the place of these, wherever it is noted that they must not be written to."""
        log = UNSUBSCRIBED_EMAILS_LOG
        for email in emails:
            veiled = self.of(email)
            listed = SUPPRESSED_EMAILS.c.folded
            await sql.execute(delete(SUPPRESSED_EMAILS).where(listed == veiled))
            await sql.execute(update(SUPPRESSED_EMAILS).where(listed == email).values(
                folded=veiled, email_address=veiled))
            await sql.execute(update(log).where(
                or_(log.c.email_address == email, func.lower(log.c.email_address) == email)
            ).values(email_address=veiled, visitor_id=None))
        for phone in phones:
            veiled = self.of(phone)
            number = SUPPRESSED_PHONE_NUMBERS.c.phone_number
            await sql.execute(delete(SUPPRESSED_PHONE_NUMBERS).where(number == veiled))
            await sql.execute(update(SUPPRESSED_PHONE_NUMBERS).where(number == phone).values(
                phone_number=veiled, reason_details={}))

    async def lift_emails(self, sql: AsyncConnection, addresses: Mapping[str, str]) -> None:
        """Spell out what somebody has again: addresses by what they are compared by."""
        await self._lift(sql, SUPPRESSED_EMAILS, "folded", {
            key: {"folded": key, "email_address": shown} for key, shown in addresses.items()})

    async def lift_phones(self, sql: AsyncConnection, numbers: Iterable[str]) -> None:
        """Spell out what somebody has again."""
        await self._lift(sql, SUPPRESSED_PHONE_NUMBERS, "phone_number", {
            number: {"phone_number": number} for number in numbers})

    async def _lift(self, sql: AsyncConnection, table: Table, column: str, values: dict[str, dict[str, Any]]) -> None:
        by_hash = {self.of(key): key for key in values}
        hashes, listed = list(by_hash), table.c[column]
        for first in range(0, len(hashes), STEP):
            found = list(await sql.scalars(select(listed).where(listed.in_(hashes[first : first + STEP]))))
            for veiled in found:
                key = by_hash[veiled]
                if await sql.scalar(select(table.c.id).where(listed == key)) is not None:
                    await sql.execute(delete(table).where(listed == veiled))
                else:
                    await sql.execute(update(table).where(listed == veiled).values(**values[key]))
