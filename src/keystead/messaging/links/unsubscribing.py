"""Whoever holds an unsubscribe link may say that an address gets no more email."""

from collections.abc import Callable, Sequence
from typing import Final

from keystead.errors import Refused
from keystead.members import Suppression, normal_email
from keystead.messaging.links.links import Links
from keystead.messaging.links.models import Target
from keystead.messaging.links.rows import addresses_written_to
from keystead.store import Database

PAGE: Final = "unsubscribe"


class InvalidCode(Refused):
    """The code is not that of an unsubscribe link."""


class Unsubscribing:
    """Checks the code, without counting a click, and suppresses. Safe to repeat.

    ``forget`` hears each address, so that whoever still believes it free asks again before the next email.
    """

    def __init__(
        self, links: Links, database: Database, suppression: Suppression,
        forget: Callable[[str], None] = lambda address: None,
    ) -> None:
        self._links, self._database, self._suppression, self._forget = links, database, suppression, forget

    async def addresses(self, target: Target) -> list[str]:
        """The addresses that the message of this link went to; none while its row is not written."""
        return await addresses_written_to(self._database, target.code, target.touch_uid)

    async def unsubscribe(self, code: str, addresses: Sequence[str], *, visitor_uid: str | None = None) -> None:
        """These addresses get no more email.

        ``InvalidCode`` unless the code is that of an unsubscribe link; ``Invalid`` for what is no address.
        """
        target = await self._links.resolve(code, limited=True)
        if target is None or target.page_identifier != PAGE:
            raise InvalidCode("this code does not permit to unsubscribe")
        for address in addresses:
            normal_email(address)
        for address in addresses:
            await self._suppression.unsubscribe_email(address, link_code=code, visitor_uid=visitor_uid)
            self._forget(address)
