"""The hands of a courier: what it takes from the lanes, what it holds, and what it puts back."""

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from keystead.clock import Clock
from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.keys import ListRef
from keystead.messaging.sending.channel import Channel, lane_of
from keystead.messaging.sending.models import Lane, Outgoing
from keystead.patterns.worklist_items import Item, Spoiled, TakenItems, count_spoiled, opened
from keystead.telemetry import logger

T = TypeVar("T", bound=Outgoing)

TAKE_MORE = Script("keystead.patterns", "scripts/worklist/take_more.lua")
PUT_BACK = Script("keystead.patterns", "scripts/worklist/put_back.lua")

# Eight of twelve are urgent, three normal, one can wait; spread, so that none waits for all the others.
TURNS: Final = tuple({"h": Lane.HIGH, "n": Lane.NORMAL, "l": Lane.LOW}[letter] for letter in "hhnhhlhnhhnh")
# Below the time that the sign of life sent along counts; so soon is it noticed that a connection died silently.
WAIT_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.5
MOST_LEFT: Final = 1000  # looked for at the end
LATE_SECONDS: Final = 2.0  # by then the server has noticed that a connection is gone, and delivers nothing more over it
_DEFAULT_ALIVE_MS: Final = 1  # the default worker gives no signs of life

_log = logger("messaging.sending")


@dataclass(slots=True)
class Grip(Generic[T]):
    """What one take gave."""

    items: list[Item[T]]
    closed: bool = False
    suspects_wait: bool = False
    alone: bool = False


class Hands(Generic[T]):
    """Takes messages by weight into one purgatory, and remembers which it holds. Without a name: the default worker,
    for a single run, whose purgatory nobody adopts."""

    def __init__(self, valkey: Valkey, clock: Clock, channel: Channel[T], name: str) -> None:
        self.worker = channel.work.worker(name)
        # The same worker, whose dead are not buried before their failure jobs are queued.
        self.mourner = copy.copy(self.worker)
        self.mourner.dead = channel.given_up
        self.held: dict[bytes, Item[T]] = {}
        self.stir = asyncio.Event()
        self.is_idle = False  # there is nothing to do but to wait
        self._valkey, self._clock, self._channel, self._name = valkey, clock, channel, name
        self._turn = 0
        self._waiting: dict[Lane, asyncio.Task[None]] = {}
        self._look_at: list[float] = []  # when to look for messages that a lost reply left in purgatory

    # -- taking -----------------------------------------------------------------------------------------------------

    async def take(self, most: int) -> Grip[T]:
        """Up to ``most`` messages, each lane by its weight; what one lane lacks the others give. One round trip."""
        if self._look_at and self._look_at[0] <= time.monotonic() and (left := await self._left_behind(most)):
            return Grip(left)
        if not self._name and await self._channel.paused_key.at().is_raised(self._valkey):
            return Grip([], closed=True)
        try:
            async with self._valkey.pipeline(transaction=False) as pipeline:
                asked = [self._ask(pipeline, order, share) for order, share in self._shares(most)]
                await pipeline.execute()
            answers = [answer for asking in asked for answer in [await each for each in asking]]
        except Unavailable:
            self.look_for_leftovers()
            raise
        items = await self._usable(answers)
        return Grip(items[:most], closed=any(each.closed for each in answers),
                    suspects_wait=any(each.suspects_wait for each in answers))

    async def take_suspect(self) -> Grip[T]:
        """The message on its last try after crashes, if one waits, to be carried alone; otherwise any one message."""
        lists = [self._channel.waiting(lane) for lane in (Lane.NORMAL, Lane.HIGH, Lane.LOW)]
        try:
            taken = await self.worker.take_from(
                self._valkey, lists, self._channel.paused_key.at(), 1, now=self._clock.now(), leftovers_first=False,
            )
        except Unavailable:
            self.look_for_leftovers()
            raise
        return Grip(self._new(taken.items), taken.closed, taken.suspects_wait, taken.alone)

    def _shares(self, most: int) -> Iterable[tuple[tuple[Lane, ...], int]]:
        whole, rest = divmod(most, len(TURNS))
        shares = {lane: whole * TURNS.count(lane) for lane in Lane}
        for _ in range(rest):
            shares[TURNS[self._turn]] += 1
            self._turn = (self._turn + 1) % len(TURNS)
        for lane, share in shares.items():
            if share:
                yield (lane, *(other for other in Lane if other is not lane)), share

    def _ask(self, pipeline: Pipeline, order: Sequence[Lane], share: int) -> list[Awaitable[TakenItems[T]]]:
        lists = [self._channel.waiting(lane) for lane in order]
        if self._name:
            return [self.worker.take_from(
                pipeline, lists, self._channel.paused_key.at(), share, now=self._clock.now(), leftovers_first=False,
                holds_nothing=False,
            )]
        return [self._take_more(pipeline, lists[0], share)]

    def _take_more(self, pipeline: Pipeline, place: ListRef[T], share: int) -> Awaitable[TakenItems[T]]:
        return TAKE_MORE(
            pipeline, keys=(place, self.worker.purgatory, self.worker.poison), args=(share, "", _DEFAULT_ALIVE_MS),
            decode=lambda reply: TakenItems(*_opened(place, reply[1])),
        )

    async def _usable(self, answers: Sequence[TakenItems[T]]) -> list[Item[T]]:
        await self._bury([each for answer in answers for each in answer.spoiled])
        return self._new([item for answer in answers for item in answer.items])

    def _new(self, items: Iterable[Item[T]]) -> list[Item[T]]:
        """What we do not hold yet. A message that comes again was adopted from us while we looked dead: it is carried
        already, and settled once."""
        new = []
        for item in items:
            if item.raw in self.held:
                self.look_for_leftovers()
            else:
                self.held[item.raw] = item
                new.append(item)
        return new

    async def _bury(self, spoiled: Sequence[Spoiled]) -> None:
        if spoiled:
            count_spoiled(self.worker.queue.declaration, tuple(spoiled))
            await self.worker.bury(self._valkey, spoiled, error=None, now=self._clock.now())

    # -- after lost replies -------------------------------------------------------------------------------------------

    def look_for_leftovers(self) -> None:
        """What a lost reply told of lies in purgatory, and nobody else looks there while we live."""
        now = time.monotonic()
        self._look_at = [now, now + LATE_SECONDS]

    async def _left_behind(self, most: int) -> list[Item[T]]:
        raws = await self._valkey.run(
            ("LRANGE", self.worker.purgatory.name(self._valkey.layout), 0, -1), list, repeat=True
        )
        left = [raw for raw in raws if raw not in self.held]
        if len(left) <= most:
            del self._look_at[0]
        items, spoiled = opened(self.worker.queue.codec, left[:most])
        await self._bury(spoiled)
        return self._new(items)

    # -- waiting ----------------------------------------------------------------------------------------------------

    def wait(self, group: asyncio.TaskGroup, arrived: Callable[[Item[T]], None]) -> None:
        """Wait on every lane, each on a connection of its own, without polling."""
        for lane in Lane:
            if lane not in self._waiting:
                self._waiting[lane] = group.create_task(self._wait_on(lane, arrived))

    @property
    def look_in_seconds(self) -> float:
        """After how long whoever waits should take all the same: a lost reply may have told of messages."""
        if not self._look_at:
            return WAIT_SECONDS
        return min(WAIT_SECONDS, max(0.0, self._look_at[0] - time.monotonic()))

    def stop_waiting(self) -> None:
        """Break off every wait. What one of them was about to bring lies in purgatory: see ``left_behind``."""
        if self._waiting:
            self.look_for_leftovers()
        for task in self._waiting.values():
            task.cancel()

    async def left_behind(self) -> list[Item[T]]:
        """At the end, what a lost reply or a wait that was broken off left in purgatory; nobody has carried it.

        Looked for twice: what is asked second comes after the server has noticed that a wait is gone.
        """
        found: list[Item[T]] = []
        for _ in self._look_at[:]:
            found += await self._left_behind(MOST_LEFT)
        return found

    async def _wait_on(self, lane: Lane, arrived: Callable[[Item[T]], None]) -> None:
        layout = self._valkey.layout
        place, purgatory = self._channel.waiting(lane), self.worker.purgatory.name(layout)
        try:
            raw = None
            while raw is None:
                # In one write: the sign of life is on the server before a message can arrive. What is asked behind the
                # wait is answered after it: meanwhile the channel may have been paused, or a dead courier's messages
                # adopted.
                async with self._valkey.pipeline(transaction=False) as pipeline:
                    self.worker.beat(pipeline)
                    moved = pipeline.run(
                        ("BLMOVE", place.name(layout), purgatory, "LEFT", "RIGHT", WAIT_SECONDS), _raw
                    )
                    closed = pipeline.run(("EXISTS", self._channel.paused_key.at().name(layout)), bool)
                    suspects = pipeline.run(("EXISTS", self.worker.poison.name(layout)), bool)
                    await pipeline.execute()
                raw = await moved
                if raw is None and not self.is_idle:
                    return
            if await closed or (await suspects and await self.worker.is_suspect(self._valkey, raw)):
                await PUT_BACK(self._valkey, keys=(self.worker.purgatory, place), args=(1, raw))
                return
            items, spoiled = opened(place.codec, [raw])
            await self._bury(spoiled)
            for item in self._new(items):
                arrived(item)
        except (Unavailable, ErrorReply) as error:
            _log.warning("a courier cannot wait for messages", channel=self._channel.name, error=str(error))
            self.look_for_leftovers()
            await asyncio.sleep(PAUSE_SECONDS)
        finally:
            del self._waiting[lane]
            self.stir.set()

    # -- letting go -------------------------------------------------------------------------------------------------

    def let_go(self, items: Iterable[Item[T]]) -> None:
        """These are settled, or not ours any more."""
        for item in items:
            self.held.pop(item.raw, None)

    async def put_back(self, items: Sequence[Item[T]], asked: Iterable[str] = ()) -> None:
        """Return messages to the front of their lanes, in their order. The intents of ``asked`` are removed first:
        their provider was not asked."""
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for uid in asked:
                self._channel.intent(uid).delete(pipeline)
            for lane in Lane:
                if raws := [item.raw for item in items if lane_of(item.value.lane) is lane]:
                    PUT_BACK(pipeline, keys=(self.worker.purgatory, self._channel.waiting(lane)), args=(1, *raws))
            await pipeline.execute()
        self.let_go(items)


def _opened(place: ListRef[T], raws: Iterable[bytes]) -> tuple[list[Item[T]], bool, tuple[Spoiled, ...]]:
    items, spoiled = opened(place.codec, raws)
    return items, False, spoiled


def _raw(reply: bytes | None) -> bytes | None:
    return reply
