"""Settling: what became of messages is told to the server, each with all that follows from it, many in one exchange."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.messaging.sending.carrier import Carried, Health
from keystead.messaging.sending.channel import Channel
from keystead.messaging.sending.courier_gate import Gate, Ticket
from keystead.messaging.sending.courier_hands import PAUSE_SECONDS, Hands
from keystead.messaging.sending.models import Outgoing
from keystead.patterns import Item
from keystead.telemetry import logger

T = TypeVar("T", bound=Outgoing)
R = TypeVar("R")

THROTTLED_SECONDS: Final = 1.0  # where a provider asks for a pause and does not say how long
LAST_SECONDS: Final = 30.0  # how long a server that is away is waited for, at the end, to note what was sent

_log = logger("messaging.sending")


@dataclass(slots=True)
class Settlement(Generic[T]):
    """One request's results, to be told to the server; ``ours`` says which of its messages were still ours."""

    ticket: Ticket[T]
    carried: Sequence[tuple[Item[T], Carried]]
    health: Health
    ours: list[bool] = field(default_factory=list)
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    is_told: bool = False


class Settling(Generic[T]):
    """Tells the server what became of messages. ``stopping``: it is time to end, also if the server stays away."""

    def __init__(
        self, valkey: Valkey, channel: Channel[T], hands: Hands[T], gate: Gate[T], stopping: Callable[[], bool]
    ) -> None:
        self._valkey, self._channel, self._hands, self._gate, self._stopping = valkey, channel, hands, gate, stopping
        self._unsettled: list[Settlement[T]] = []
        self._is_settling = False

    async def tell(self, mine: Settlement[T]) -> None:
        """Tell the server, in one exchange with all others that ended meanwhile. One of them leads at a time."""
        self._unsettled.append(mine)
        if self._is_settling:
            await mine.turn.wait()
            if mine.is_told:
                return
        self._is_settling = True
        try:
            await asyncio.sleep(0)
            together, self._unsettled = self._unsettled, []
            try:
                await self.surely(lambda: self._tell(together))
            except Exception:  # whatever it is: who waits for us must not wait for ever
                if len(together) == 1:
                    raise
                # One of them is at fault. Those that were settled are not settled again.
                self._unsettled = [*(each for each in together if each is not mine), *self._unsettled]
                await self.surely(lambda: self._tell([mine]))
                return
            for each in together:
                each.is_told = True
                each.turn.set()
        finally:
            self._is_settling = False
            if self._unsettled:
                self._is_settling = True
                self._unsettled[0].turn.set()

    async def _tell(self, settlements: Sequence[Settlement[T]]) -> None:
        pipeline = self._valkey.pipeline(transaction=False)
        noted = self._gate.note(pipeline, [(each.ticket, each.health) for each in settlements])
        for each in settlements:
            if each.health is Health.THROTTLED:
                pause = max(result.retry_after_seconds for _, result in each.carried)
                self._channel.pause_for(pipeline, pause or THROTTLED_SECONDS)
        told = iter(await self._hands.worker.settle_each(
            self._valkey, [(item, result.writes) for each in settlements for item, result in each.carried],
            also=pipeline,
        ))
        for each in settlements:
            each.ours = [_or_raised(next(told)) for _ in each.carried]
        for note in noted:
            self._gate.noted(await note)

    async def surely(self, ask: Callable[[], Awaitable[R]]) -> R | None:
        """Ask until the server answers. Every script asked here finds its message in purgatory or does nothing, so an
        answer that was lost is asked for again. None when we are to end and the server stays away."""
        loop = asyncio.get_running_loop()
        ends_at = None
        while True:
            try:
                return await ask()
            except (Unavailable, ErrorReply) as error:
                if isinstance(error, ErrorReply) and not _may_pass(error):
                    raise
                _log.warning("a message waits to be settled", channel=self._channel.name, error=str(error))
            if self._stopping():
                ends_at = ends_at or loop.time() + LAST_SECONDS
                if loop.time() >= ends_at:
                    return None
            await asyncio.sleep(PAUSE_SECONDS)


def _or_raised(answer: bool | ErrorReply) -> bool:
    if isinstance(answer, bool):
        return answer
    raise answer


def _may_pass(error: ErrorReply) -> bool:
    """Memory or disk is full, or replicas are missing: nothing of the script was done."""
    text = str(error)
    return "when used memory > 'maxmemory'" in text or text.startswith(("MISCONF", "NOREPLICAS"))
