"""Numbers that must not be texted, asked for in batches and remembered for a minute."""

import asyncio
from typing import Final

from keystead.clock import Clock
from keystead.errors import Unavailable
from keystead.members import Suppression

REMEMBERED_SECONDS: Final = 60.0
REMEMBERED_NUMBERS: Final = 50_000


class Suppressed:
    """Whether numbers are suppressed. Only that one is not is remembered: what is listed is asked for each time.

    Questions that meet share one query. A number that is listed by another process may be believed free for up to
    ``REMEMBERED_SECONDS``; one that is listed here is known at once, with ``forget``.
    """

    def __init__(self, suppression: Suppression, clock: Clock) -> None:
        self._suppression, self._clock = suppression, clock
        self._free: dict[str, float] = {}  # number → when we believe it no longer
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._asking = False

    async def has(self, number: str) -> bool:
        """Whether this number must not be texted. ``Unavailable`` if nobody can say."""
        if self._free.get(number, 0.0) > self._clock.now():
            return False
        answer = self._waiting.get(number)
        if answer is None:
            answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        if not self._asking:
            await self._ask()
        return await asyncio.shield(answer)

    def forget(self, number: str) -> None:
        """This number's state has changed."""
        self._free.pop(number, None)

    async def _ask(self) -> None:
        self._asking = True
        batch: dict[str, asyncio.Future[bool]] = {}
        try:
            while self._waiting:
                await asyncio.sleep(0)  # whoever else is about to ask can join
                batch, self._waiting = self._waiting, {}
                listed = await self._suppression.phones(batch)
                self._remember([number for number in batch if number not in listed])
                for number, answer in batch.items():
                    answer.set_result(number in listed)
        finally:
            self._asking = False
            for answer in (*batch.values(), *self._waiting.values()):
                if not answer.done():  # we failed, or were cancelled: the others ask again later
                    answer.set_exception(Unavailable("which numbers are suppressed could not be read"))
                    answer.exception()
            self._waiting = {}

    def _remember(self, numbers: list[str]) -> None:
        if len(self._free) + len(numbers) > REMEMBERED_NUMBERS:
            self._free.clear()
        until = self._clock.now() + REMEMBERED_SECONDS
        self._free.update(dict.fromkeys(numbers, until))
