"""One-click unsubscribing (RFC 8058): the headers of bulk email, and what becomes of a click."""

from typing import Final
from urllib.parse import quote

from keystead.edge import Tickets
from keystead.members import Suppression, folded_email
from keystead.messaging.email.suppressed import Suppressed
from keystead.telemetry import counts

PURPOSE: Final = "email unsubscribe"
PATH: Final = "/api/1/emails/unsubscribe"
LASTS_SECONDS: Final = 366 * 86400.0
LOGGED_AS: Final = "one-click"

counts.describe("emails_unsubscribed", "one-click wishes for no more email, by whether they were new")


class Unsubscribing:
    """Makes links that only the reader of an email has, and follows them. ``public_url``: how the world reaches us."""

    def __init__(self, tickets: Tickets, suppression: Suppression, suppressed: Suppressed, public_url: str) -> None:
        self._tickets, self._suppression, self._suppressed = tickets, suppression, suppressed
        self._public_url = public_url.rstrip("/")

    def link(self, address: str) -> str:
        """Whoever posts to it wants no more email at this address. It needs no log-in, and works for a year."""
        token = self._tickets.issue(PURPOSE, address, lasts_seconds=LASTS_SECONDS)
        return f"{self._public_url}{PATH}?token={quote(token)}"

    def headers(self, address: str) -> tuple[tuple[str, str], ...]:
        """What lets a mail program offer a button. None where nobody could reach the link."""
        if not self._public_url:
            return ()
        return (("List-Unsubscribe", f"<{self.link(address)}>"),
                ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))

    def address_of(self, token: str) -> str:
        """Whose link it is; refuses one that was not made here."""
        return self._tickets.read(PURPOSE, token).subject

    async def unsubscribe(self, token: str) -> bool:
        """No more email for the holder of this link: on the list, logged, told to reminders; says whether it is new."""
        address = self.address_of(token)
        new = await self._suppression.unsubscribe_email(folded_email(address), link_code=LOGGED_AS)
        self._suppressed.forget(address)
        counts.add("emails_unsubscribed", new=str(new).lower())
        return new
