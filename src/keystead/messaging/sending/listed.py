"""Addresses that must not be written to: asked for in batches; that one is free is believed for a minute."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from keystead.clock import Clock
from keystead.errors import Unavailable

BELIEVED_SECONDS: Final = 60.0
MOST_BELIEVED: Final = 50_000


class Listed:
    """Whether an address is on the list. Questions of one moment share a query; nobody waits for a later one.

    An address that another process puts on the list may be believed free for ``BELIEVED_SECONDS``; one of which we hear
    ourselves is asked for again after ``forget``. What is listed is asked for each time.
    """

    def __init__(
        self, ask: Callable[[set[str]], Awaitable[set[str]]], clock: Clock, *, folded: Callable[[str], str] = str
    ) -> None:
        """``ask`` gives those of the addresses that are listed; ``folded`` is what they are compared by."""
        self._ask, self._clock, self._folded = ask, clock, folded
        self._free: dict[str, float] = {}  # address → until when we believe it
        self._next: _Batch | None = None  # not asked yet, so that others can join
        self._asked: list[_Batch] = []

    async def has(self, address: str) -> bool:
        """Whether this address must not be written to. ``Unavailable`` if nobody can say."""
        folded = self._folded(address)
        if self._free.get(folded, 0.0) > self._clock.now():
            return False
        if self._next is not None:
            self._next.addresses.add(folded)
            return folded in await asyncio.shield(self._next.listed)
        self._next = batch = _Batch({folded}, asyncio.get_running_loop().create_future())
        return folded in await self._find(batch)

    async def expect(self, addresses: Iterable[str]) -> None:
        """These are asked for soon: find out about all of them at once. Whatever goes wrong shows when they are."""
        now = self._clock.now()
        unknown = {folded for address in addresses if self._free.get(folded := self._folded(address), 0.0) <= now}
        if unknown:
            with contextlib.suppress(Exception):  # whoever asks for one of them meets it, and can act
                await self._answer(_Batch(unknown, asyncio.get_running_loop().create_future()))

    def forget(self, address: str) -> None:
        """What is believed of this address, or is just being asked, is not true any more."""
        folded = self._folded(address)
        self._free.pop(folded, None)
        for batch in self._asked:
            batch.outdated.add(folded)

    async def _find(self, batch: "_Batch") -> set[str]:
        """The first who asks does so for all who ask in the same moment."""
        try:
            await asyncio.sleep(0)  # whoever is about to ask can join
        except BaseException as error:
            batch.failed(error)
            raise
        finally:
            self._next = None
        return await self._answer(batch)

    async def _answer(self, batch: "_Batch") -> set[str]:
        self._asked.append(batch)
        try:
            listed = await self._ask(batch.addresses)
        except BaseException as error:
            batch.failed(error)
            raise
        finally:
            self._asked = [each for each in self._asked if each is not batch]
        batch.listed.set_result(listed)
        self._believe(batch.addresses - listed - batch.outdated)
        return listed

    def _believe(self, free: set[str]) -> None:
        if len(self._free) + len(free) > MOST_BELIEVED:
            self._free.clear()
        self._free.update(dict.fromkeys(free, self._clock.now() + BELIEVED_SECONDS))


@dataclass(slots=True)
class _Batch:
    addresses: set[str]
    listed: "asyncio.Future[set[str]]"
    outdated: set[str] = field(default_factory=set)

    def failed(self, error: BaseException) -> None:
        self.listed.set_exception(Unavailable(f"what is suppressed could not be read: {type(error).__name__}"))
        self.listed.exception()  # taken note of, even if nobody else asked
