"""Fan-out: events to every process that has a listener in a room; none hears its own twice, a gap is noticed.

``docs/patterns/fanout.md`` says when to choose it and what it cannot promise.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

import msgspec

from keystead.engine import Script, Valkey
from keystead.errors import Invalid
from keystead.keys import Channel, IntegerKey, Keyspace, Layout, Sliding, Value
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.fanout_room import Envelope, FanOutListener, Room
from keystead.telemetry import counts

PUBLISH = Script("keystead.patterns", "scripts/fanout/publish.lua")
SEQUENCE_SECONDS = 86400.0
FETCH = b'{"t":"fetch"}'
_NUMBER_BYTES = 32  # what the number adds to an envelope at most

counts.describe("fanout_too_large", "events sent as a fetch marker because they were too large")


class FanOut:
    """Events of many rooms, one channel each: ``pattern`` with the variables that name a room.

    Also declares ``{pattern}:sequence``, the number of the last event of a room that was sent with one; it is
    forgotten a day after that event. ``most_bytes`` bounds an envelope: of a larger event only a fetch marker is sent.
    ``linger_seconds``: how long a room is still listened to after its last local listener left.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, sequence: str = "", most_bytes: int = 64 * 1024,
        linger_seconds: float = 30.0, **facts: Unpack[PatternFacts],
    ) -> None:
        self.most_bytes, self.linger_seconds = most_bytes, linger_seconds
        self.channel: Channel[Envelope] = Channel(keyspace, pattern, Envelope, **facts)
        self.sequence_key = IntegerKey(
            keyspace, sequence or f"{pattern}:sequence",
            **told(facts, "number of the last event", scripts=("fanout/publish.lua",),
                   ttl=Sliding(SEQUENCE_SECONDS, reads=False)),
        )

    @asynccontextmanager
    async def open(self, valkey: Valkey, *, origin: str = "") -> AsyncIterator["FanOutHere"]:
        """Fan-out as one process takes part in it; ``origin`` must be its own, and is made up unless given."""
        here = FanOutHere(self, valkey, origin or str(uuid.uuid4()))
        try:
            yield here
        finally:
            await here.aclose()


class FanOutHere:
    """This process's part: the rooms it has listeners in, and what it sends."""

    def __init__(self, fanout: FanOut, valkey: Valkey, origin: str) -> None:
        self.origin = origin
        self._fanout, self._valkey = fanout, valkey
        self._rooms: dict[str, Room] = {}

    @property
    def rooms(self) -> int:
        """How many rooms are listened to now, those that linger included."""
        return len(self._rooms)

    # -- listening --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def join(
        self, *variables: Value, user: str = "", most_events: int = 256, most_bytes: int = 1024 * 1024
    ) -> AsyncIterator[FanOutListener]:
        """Listen to a room. Once entered, the server has confirmed: what is published after is delivered.

        Events that skip ``user`` are not delivered. A listener that has more than ``most_events`` or ``most_bytes``
        waiting is cut off: its iteration ends with ``TooSlow``.
        """
        room = self._room(variables)
        listener = FanOutListener(user, most_events, most_bytes)
        room.add(listener)
        try:
            await room.ready()
            yield listener
        finally:
            room.remove(listener)

    def _room(self, variables: tuple[Value, ...]) -> Room:
        channel = self._fanout.channel.at(*variables)
        room = self._rooms.get(channel.logical)
        if room is None or room.ending:
            room = Room(self._valkey, channel, self.origin, self._fanout.linger_seconds, self._forget)
            self._rooms[channel.logical] = room
        return room

    def _forget(self, room: Room) -> None:
        if self._rooms.get(room.name) is room:
            del self._rooms[room.name]

    # -- sending ----------------------------------------------------------------------------------------------------

    async def publish(self, *variables: Value, payload: bytes, skip: str | None = None, fetch: bytes = FETCH) -> int:
        """Number an event and send it to every other process; local listeners get it in the same order.

        ``payload`` is JSON and reaches listeners byte for byte. ``skip`` names a user who is not to get it. An event
        too large for an envelope is sent to others as ``fetch``. Returns the number.
        """
        reference = self._fanout.sequence_key.at(*variables)
        channel = self._fanout.channel.at(*variables)
        before, after = self._split(self.envelope(payload, skip=skip, fetch=fetch))
        layout = self._valkey.layout
        number: int = await PUBLISH(
            self._valkey, keys=[reference],
            args=(round(SEQUENCE_SECONDS * 1000), "PUBLISH" if layout is Layout.PLAIN else "SPUBLISH",
                  channel.name(layout), before, after),
        )
        room = self._rooms.get(channel.logical)
        if room is not None:
            room.own(payload, skip, number)
        return number

    async def tell(self, *variables: Value, payload: bytes, skip: str | None = None, fetch: bytes = FETCH) -> None:
        """Send an event without a number: a passing one (someone types), or one that is numbered in its payload."""
        channel = self._fanout.channel.at(*variables)
        raw = self.envelope(payload, skip=skip, fetch=fetch)
        layout = self._valkey.layout
        self.deliver(*variables, payload=payload, skip=skip)
        verb = "PUBLISH" if layout is Layout.PLAIN else "SPUBLISH"
        await self._valkey.run((verb, channel.name(layout), raw), int)

    def deliver(self, *variables: Value, payload: bytes, skip: str | None = None) -> None:
        """Hand an event without a number to the local listeners at once; its echo from the channel is dropped.

        For whoever publishes ``envelope`` from a script of its own.
        """
        room = self._rooms.get(self._fanout.channel.at(*variables).logical)
        if room is not None:
            room.own(payload, skip, None)

    def envelope(self, payload: bytes, *, skip: str | None = None, fetch: bytes = FETCH) -> bytes:
        """The bytes to publish: the payload as it is, or ``fetch`` if the envelope would be too large."""
        raw = self._wrapped(payload, skip)
        if len(raw) + _NUMBER_BYTES <= self._fanout.most_bytes:
            return raw
        counts.add("fanout_too_large", channel=self._fanout.channel.pattern)
        return self._wrapped(fetch, skip)

    def _wrapped(self, payload: bytes, skip: str | None) -> bytes:
        try:
            msgspec.json.decode(payload)
        except msgspec.DecodeError as error:
            raise Invalid(f"the payload of an event must be JSON: {error}") from None
        return msgspec.json.encode(Envelope(self.origin, skip, None, msgspec.Raw(payload)))

    def _split(self, raw: bytes) -> tuple[bytes, bytes]:
        """Where the number goes: behind the opening brace, so that the payload is not looked at again."""
        return b'{"seq":', b"," + raw[1:]

    async def aclose(self) -> None:
        await asyncio.gather(*(room.aclose() for room in list(self._rooms.values())), return_exceptions=True)


