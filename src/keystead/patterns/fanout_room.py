"""One room of a fan-out in this process: its subscription, its listeners, and the order of its events."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec

from keystead.engine import CutOff, Valkey
from keystead.errors import LimitReached, Unavailable
from keystead.keys import ChannelRef, Undecodable
from keystead.telemetry import counts, logger

RETRY_SECONDS = 0.2
MOST_EARLY = 1000
_NOT_THERE = object()

counts.describe("fanout_gaps", "times that listeners of a room were told to fetch what they may have missed")
counts.describe("fanout_refused", "messages on a fan-out channel that did not decode")
counts.describe("fanout_listeners_cut_off", "listeners that were too slow and were cut off")

_log = logger("patterns")


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """What travels: ``opid`` is the process that sent it, ``xuid`` the user to skip, ``seq`` its number in the room,
    ``p`` the payload as it was given."""

    opid: str
    xuid: str | None = None
    seq: int | None = None
    p: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Event:
    """What a listener gets: a payload, or with ``resync`` the word that some may be missing before this point."""

    payload: bytes = b""
    seq: int | None = None
    resync: bool = False


class TooSlow(LimitReached):
    """The listener had more waiting than it may; it should connect again and fetch what it missed."""

    def __init__(self) -> None:
        super().__init__("the listener did not keep up and was cut off", retry_after_seconds=0.0)


class FanOutListener:
    """One consumer: ``async for event in listener``."""

    def __init__(self, user: str, most_events: int, most_bytes: int) -> None:
        self.user = user
        self._most_events, self._most_bytes = most_events, most_bytes
        self._waiting: deque[Event] = deque()
        self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self._closed = False
        self._too_slow = False

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._too_slow:
                raise TooSlow
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        event = self._waiting.popleft()
        self._bytes -= len(event.payload)
        return event

    def put(self, event: Event) -> None:
        if self._closed:
            return
        if event.resync and self._waiting and self._waiting[-1].resync:
            return  # told already
        self._waiting.append(event)
        self._bytes += len(event.payload)
        if len(self._waiting) > self._most_events or self._bytes > self._most_bytes:
            counts.add("fanout_listeners_cut_off")
            self._waiting.clear()
            self._too_slow = True
            self.close()
        self._stir()

    def close(self) -> None:
        self._closed = True
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Room:
    """Subscribed while it has local listeners, and for a while after the last."""

    def __init__(
        self, valkey: Valkey, channel: ChannelRef[Envelope], origin: str, linger_seconds: float,
        on_end: "Callable[[Room], None]",
    ) -> None:
        self.name = channel.logical
        self._hub = valkey.hub()
        self._channel, self._origin = channel, origin
        self._linger_seconds, self._on_end = linger_seconds, on_end
        self._listeners: set[FanOutListener] = set()
        self._last: int | None = None  # number of the last event that was handed out
        self._early: OrderedDict[int, object] = OrderedDict()  # own events handed out before their echo came
        self._subscribed = asyncio.Event()
        self._failure: BaseException | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="keystead fan-out room")
        self._task.add_done_callback(self._ended)

    # -- who listens ------------------------------------------------------------------------------------------------

    def add(self, listener: FanOutListener) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self._listeners.add(listener)

    async def ready(self) -> None:
        """Until the server has confirmed the subscription; raises why it could not be had."""
        await self._subscribed.wait()
        if self._failure is not None:
            raise self._failure

    def remove(self, listener: FanOutListener) -> None:
        listener.close()
        self._listeners.discard(listener)
        if not self._listeners and self._leaving is None and not self._task.done():
            self._leaving = asyncio.get_running_loop().call_later(self._linger_seconds, self._task.cancel)

    @property
    def ending(self) -> bool:
        """Whether it will not last: whoever joins now needs another."""
        return self._task.done() or self._task.cancelling() > 0

    async def aclose(self) -> None:
        for listener in list(self._listeners):
            listener.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if self._leaving is not None:
            self._leaving.cancel()
        self._on_end(self)
        error = None if task.cancelled() else task.exception()
        self._failure = error or Unavailable("the room is not listened to any more; join it again")
        self._subscribed.set()
        for listener in list(self._listeners):
            listener.close()

    # -- what comes -------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        begun = False
        while True:
            try:
                async with self._hub.subscribe(self._channel, on_gap=self.resync) as listener:
                    if begun:
                        self.resync()
                    begun = True
                    self._subscribed.set()
                    async for message in listener:
                        self._receive(message.payload)
                return
            except CutOff:
                _log.warning("fan-out room fell behind its channel", channel=self.name)
            except Unavailable:
                if not begun:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    def _receive(self, raw: bytes) -> None:
        try:
            envelope = self._channel.codec.decode(raw)
        except Undecodable:
            counts.add("fanout_refused")
            self.resync()
            return
        mine = envelope.opid == self._origin
        if envelope.seq is None:
            if not mine:
                self._hand_out(Event(bytes(envelope.p)), envelope.xuid)
        elif not mine or self._early.pop(envelope.seq, _NOT_THERE) is _NOT_THERE:
            self._in_turn(Event(bytes(envelope.p), envelope.seq), envelope.xuid)

    def own(self, payload: bytes, skip: str | None, number: int | None) -> None:
        """An event of this process: handed out at once if it is the next, else when its echo comes in turn."""
        if number is None:
            self._hand_out(Event(payload), skip)
        elif self._last is not None and number == self._last + 1:
            self._early[number] = None
            if len(self._early) > MOST_EARLY:  # echoes that a cut has swallowed
                self._early.popitem(last=False)
            self._in_turn(Event(payload, number), skip)

    def _in_turn(self, event: Event, skip: str | None) -> None:
        assert event.seq is not None
        if self._last is not None and event.seq != self._last + 1:
            self.resync()
        self._last = event.seq
        self._hand_out(event, skip)

    def resync(self) -> None:
        """Tell every listener that events may be missing; the next number is taken as it comes."""
        counts.add("fanout_gaps", channel=self._channel.declaration.pattern)
        self._last = None
        for listener in self._listeners:
            listener.put(Event(resync=True))

    def _hand_out(self, event: Event, skip: str | None) -> None:
        for listener in self._listeners:
            if skip is None or listener.user != skip:
                listener.put(event)
