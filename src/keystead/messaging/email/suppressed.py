"""Addresses that must not be written to, asked for in batches; that one is free is believed for a minute."""

import asyncio
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock
from keystead.errors import Unavailable
from keystead.members import Suppression, folded_email

BELIEVED_SECONDS: Final = 60.0
MOST_BELIEVED: Final = 50_000


class Suppressed:
    """Whether an address is on the list. Questions of one moment share a query.

    An address that another process puts on the list may be believed free for ``BELIEVED_SECONDS``; one of which we hear
    ourselves is asked for again after ``forget``.
    """

    def __init__(self, suppression: Suppression, clock: Clock) -> None:
        self._suppression, self._clock = suppression, clock
        self._free: dict[str, float] = {}  # address → until when we believe it
        self._batch: _Batch | None = None

    async def has(self, address: str) -> bool:
        """Whether this address must not be written to. ``Unavailable`` if the database cannot say."""
        folded = folded_email(address)
        if self._free.get(folded, 0.0) > self._clock.now():
            return False
        if self._batch is not None:
            self._batch.addresses.add(folded)
            return folded in await asyncio.shield(self._batch.listed)
        return folded in await self._ask(_Batch({folded}, asyncio.get_running_loop().create_future()))

    def forget(self, address: str) -> None:
        """What is believed of this address is not true any more."""
        self._free.pop(folded_email(address), None)

    async def _ask(self, batch: "_Batch") -> set[str]:
        """The first who asks does so for all who ask in the same moment."""
        self._batch = batch
        try:
            await asyncio.sleep(0)  # whoever is about to ask can join
            self._batch = None
            listed = await self._suppression.emails(batch.addresses)
        except BaseException as error:
            batch.listed.set_exception(Unavailable(f"whether addresses are suppressed is not known: {error!r}"))
            batch.listed.exception()  # taken note of, even if nobody else asked
            raise
        finally:
            self._batch = None if self._batch is batch else self._batch
        batch.listed.set_result(listed)
        if len(self._free) + len(batch.addresses) > MOST_BELIEVED:
            self._free.clear()
        until = self._clock.now() + BELIEVED_SECONDS
        self._free.update((address, until) for address in batch.addresses if address not in listed)
        return listed


@dataclass(slots=True)
class _Batch:
    addresses: set[str]
    listed: "asyncio.Future[set[str]]"
