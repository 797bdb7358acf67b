"""Tickets that ended before their time: sessions that were logged out, tokens of programs that were taken back, and all
tickets of somebody who is gone.

They are few, so whoever reads tickets keeps them in memory and asks nobody: one that was ended here does not count from
that moment on, one that was ended elsewhere within two seconds and a moment.
"""

import asyncio
from hashlib import sha256
from itertools import takewhile
from typing import Final, Self

from keystead.clock import Clock
from keystead.edge.keys import LONGEST_TICKET_SECONDS, TICKETS_ENDED, TOKEN_ENDED_SECONDS
from keystead.edge.refreshing import keep_refreshed
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, Unavailable

# Looked at again each time: hosts set their clocks by the server, and still differ a little.
_OVERLAP_SECONDS: Final = 30.0
_TOKEN: Final = "token:"  # noqa: S105 - what such a mark begins with, not a secret


class Endings:
    """Ends tickets, and knows which were ended.

    ``keeps_seconds``: how long the longest of them lasts, except a program's token: the end of one is
    remembered for ``TOKEN_ENDED_SECONDS``.
    """

    def __init__(self, valkey: Valkey, clock: Clock, *, keeps_seconds: float) -> None:
        if keeps_seconds + 2 * _OVERLAP_SECONDS > LONGEST_TICKET_SECONDS:
            raise Invalid(f"a log-in that lasts {keeps_seconds:,.0f} seconds could not be ended for good; set "
                          f"http.session_seconds to less than {LONGEST_TICKET_SECONDS // 86400} days")
        self._valkey, self._clock = valkey, clock
        self._keeps_seconds = keeps_seconds + 2 * _OVERLAP_SECONDS
        self._ended: dict[str, float] = {}
        self._seen_until = float("-inf")
        self._seen: tuple[int, list[tuple[str, float]]] = (0, [])  # how many there were, and the newest

    @classmethod
    async def open(cls, valkey: Valkey, clock: Clock, *, keeps_seconds: float) -> Self:
        """Those of this installation, known from the start; ``run`` keeps them so."""
        opened = cls(valkey, clock, keeps_seconds=keeps_seconds)
        await opened.refresh()
        return opened

    def has(self, purpose: str, subject: str, uid: str, issued_at: float) -> bool:
        """Whether this ticket was ended. Asks nobody."""
        if not self._ended:
            return False
        return (uid in self._ended or _TOKEN + uid in self._ended
                or self._ended.get(_mark(purpose, subject), float("-inf")) >= issued_at)

    async def end(self, uid: str) -> None:
        """End one ticket, by its identifier. ``Unavailable`` if nobody would remember it: then it goes on."""
        await self._write(uid)

    async def end_token(self, uid: str) -> None:
        """``end`` for a token of a program: remembered for longer than any version let one last."""
        await self._write(_TOKEN + uid)

    async def end_all(self, purpose: str, subject: str) -> None:
        """End every ticket for ``purpose`` that ``subject`` was given until now. ``Unavailable`` as with ``end``."""
        await self._write(_mark(purpose, subject))

    async def _write(self, mark: str) -> None:
        now = self._clock.now()
        try:
            await TICKETS_ENDED.at().add(self._valkey, mark, now)
        except ErrorReply as error:
            raise Unavailable("what ended cannot be remembered: the server refuses to write; is its memory full?"
                              ) from error
        self._remember(mark, now)

    async def refresh(self) -> None:
        """Learn what ended elsewhere since the last look, and let go of what is over; one round trip, rarely more."""
        there = TICKETS_ENDED.at()
        size, newest = await asyncio.gather(there.size(self._valkey), there.range(self._valkey, -1, -1))
        if (size, newest) != self._seen:  # otherwise the last ones, which may be very many, would be read for ever
            since = self._seen_until - _OVERLAP_SECONDS
            for mark, ended_at in await there.range_by_score(self._valkey, since, float("inf")):
                self._remember(mark, ended_at)
                self._seen_until = max(self._seen_until, ended_at)
            self._seen = size, newest
        now = self._clock.now()
        over, token_over = now - self._keeps_seconds, now - TOKEN_ENDED_SECONDS + 2 * _OVERLAP_SECONDS
        # Tokens stay in front of what ends sooner; they are taken back by hand, so they are few.
        old = [mark for mark in takewhile(lambda mark: self._ended[mark] < over, self._ended)
               if not mark.startswith(_TOKEN) or self._ended[mark] < token_over]
        if old:
            await there.remove(self._valkey, *old)
        for mark in old:
            del self._ended[mark]

    async def run(self) -> None:
        """``refresh`` for ever. While the server is away, what was known goes on being true."""
        await keep_refreshed(self.refresh, "ended tickets")

    def _remember(self, mark: str, ended_at: float) -> None:
        if ended_at >= self._ended.get(mark, float("-inf")):
            self._ended.pop(mark, None)  # to the end, so that the oldest stay in front
            self._ended[mark] = ended_at


def _mark(purpose: str, subject: str) -> str:
    """Of everything that a subject holds; nobody reads from it who they are."""
    return f"all:{sha256(f'{purpose}:{subject}'.encode('utf-8', 'surrogatepass')).hexdigest()}"
