"""One fetch of one value in this process: whoever wants the value meanwhile waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from keystead.patterns.cache_family import Place

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """What a loader may return instead of the bare value, to keep it for less than the declared time."""

    value: T
    seconds: float


Load = Callable[[], Awaitable[T | Loaded[T] | None]]


class Flight(Generic[T]):
    """A fetch under way. ``landed`` gives the raw value, or None for absent, to everyone who waits."""

    __slots__ = ("_woken", "generation", "joined", "landed", "load", "place", "purged", "refresh", "waiting")

    def __init__(self, place: Place, load: Load[T], *, refresh: bool, generation: int) -> None:
        self.place = place
        self.load = load
        self.refresh = refresh  # nobody waits for it: a stale value was answered
        self.generation = generation  # of the channel when it began
        self.joined = 0
        self.purged = False  # a purge was heard since it began: what it brings must not be kept here
        self.waiting = False  # for another instance, so it has read nothing yet
        self.landed: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.landed.add_done_callback(_look)
        self._woken: asyncio.Future[None] | None = None

    def land(self, raw: bytes | None) -> None:
        if not self.landed.done():
            self.landed.set_result(raw)
        self.wake()

    def fail(self, error: BaseException) -> None:
        if not self.landed.done():
            self.landed.set_exception(error)

    def wake(self) -> None:
        """Something happened to the value: look again instead of waiting on."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Until woken, or the time is over; says whether it was woken."""
        self.waiting = True
        self._woken = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._woken
            return True
        except TimeoutError:
            return False
        finally:
            self.waiting = False
            self._woken = None


def _look(landed: "asyncio.Future[bytes | None]") -> None:
    """Everyone who waited may be gone; then nobody is to be told of an error."""
    if not landed.cancelled():
        landed.exception()
