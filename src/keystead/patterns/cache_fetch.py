"""Bringing one value: from the server, from another instance's fill, or from the source under the cache lock."""

import asyncio
import random
from typing import Generic, TypeVar

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.keys import Reply, Undecodable
from keystead.patterns.cache_family import MARKER, Family, Place, sending
from keystead.patterns.cache_flight import Flight, Loaded
from keystead.patterns.cache_frames import Push
from keystead.patterns.cache_shelf import Shelf
from keystead.telemetry import counts

T = TypeVar("T")
Sent = tuple[str, bytes, bytes]


def _script(verb: str) -> Script:
    return Script("keystead.patterns", f"scripts/cache/{verb}.lua")


BEGIN, FILL, LEAVE, DISCARD = _script("begin"), _script("fill"), _script("leave"), _script("discard")
VALUE, OURS, HELD, ABSENT = range(4)
NOBODY: Sent = ("", b"", b"")

DEAF_POLL_SECONDS = 0.05  # no message will come, so who waits must look
MOST_REFUSALS = 4  # how often a read is repeated because a purge came in between

counts.describe("cache_loads", "reads of the source")
counts.describe("cache_waits_over", "waits for another instance's fill that ended without it")
counts.describe("cache_fills_refused", "values not kept because a purge came while they were read")
counts.describe("cache_server_away", "reads that went to the source because the server was away")
counts.describe("cache_undecodable", "cached values that did not decode and were dropped")


class Fetcher(Generic[T]):
    """Reads server and source for one family."""

    def __init__(self, family: Family[T], valkey: Valkey, channel: bytes, shelf: Shelf, clock: Clock) -> None:
        self._family, self._valkey, self._channel = family, valkey, channel
        self._shelf, self._clock = shelf, clock

    async def bring(self, flight: Flight[T]) -> bytes | None:
        """The value as bytes, or None if there is none; holds it in the process where that is right."""
        if self._family.shared_seconds is not None and not flight.refresh:
            found = await self._from_server(flight)
            if found is not None:
                return found
        refusals = 0
        while not flight.landed.done():
            try:
                state, known, token, raw, left_ms = await self._begin(flight)
            except Unavailable:
                return await self._alone(flight)
            if state == HELD:
                break  # it landed meanwhile, or is a refresh that another instance does
            if state == VALUE:
                if self.readable(raw):
                    self._keep(flight, raw, self._fresh_seconds(left_ms))
                    return raw
                await self.discard(flight.place, raw)
            elif state == ABSENT:
                self._keep(flight, None, left_ms / 1000)
                return None
            elif flight.landed.done():
                await self._leave(flight.place, known, token, 0, NOBODY)
            else:
                kept, brought = await self._load(flight, known, token)
                if kept or refusals == MOST_REFUSALS:
                    return brought
                refusals += 1
                counts.add("cache_fills_refused", family=self._family.name)
        return flight.landed.result() if flight.landed.done() else None

    # -- the server -------------------------------------------------------------------------------------------------

    async def read(self, place: Place) -> tuple[bytes | None, int]:
        """The value on the server and, in families with stale values, its remaining time; else -1."""
        family, valkey = self._family, self._valkey
        left_ms = -1
        if family.sliding:
            lasting_ms = round((family.shared_seconds or 0) * 1000)
            raw: bytes | None = await valkey.call(("GETEX", place.value, "PX", lasting_ms), repeat=True)
        elif family.stale_seconds:
            commands = [("GET", place.value), ("PTTL", place.value)]
            raw, left_ms = await valkey.run_block(commands, lambda replies: (replies[0], replies[1]), repeat=True)
        else:
            raw = await valkey.call(("GET", place.value), repeat=True)
        return (None if family.marked and raw == MARKER else raw), left_ms

    async def discard(self, place: Place, raw: bytes) -> None:
        """Delete a value that does not decode, unless it was replaced meanwhile; counted."""
        counts.add("cache_undecodable", family=self._family.name)
        await DISCARD(self._valkey, keys=(place.value,), args=(raw,))

    def readable(self, raw: bytes) -> bool:
        try:
            self._family.codec.decode(raw)
        except Undecodable:
            return False
        return True

    async def _from_server(self, flight: Flight[T]) -> bytes | None:
        """The ordinary hit, without a script."""
        try:
            raw, left_ms = await self.read(flight.place)
        except Unavailable:
            return None
        if raw is None or not self.readable(raw):
            return None
        self._keep(flight, raw, self._fresh_seconds(left_ms))
        return raw

    # -- the lock ---------------------------------------------------------------------------------------------------

    async def _begin(self, flight: Flight[T]) -> tuple[int, bytes, bytes, bytes, int]:
        """Ask for the right to read the source, and wait while another instance does."""
        family, place, ear = self._family, flight.place, self._shelf.ear
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + 2 * family.wait_seconds
        lock_ms, version_ms = round(family.lock_seconds * 1000), round(family.version_seconds * 1000)
        while True:
            force = int(loop.time() >= give_up_at)
            hears = ear is not None and ear.hears()
            seen = str(ear.last_fill(place.key)) if ear is not None and hears else "*"
            begun: Reply = await BEGIN(
                self._valkey, keys=place.keys, args=(lock_ms, family.stale_ms, version_ms, seen, force)
            )
            alone = flight.refresh and not flight.joined
            if begun[0] != HELD or flight.landed.done() or alone:
                break
            poll = family.poll_seconds if hears or ear is None else min(family.poll_seconds, DEAF_POLL_SECONDS)
            patience = min(poll, begun[4] / 1000 + 0.01, max(0.01, give_up_at - loop.time()))
            if not await flight.wait(patience) and loop.time() >= give_up_at:
                counts.add("cache_waits_over", family=family.name)
            if flight.landed.done():
                break
        state, known, token, raw, left_ms = begun
        return state, known, token, raw, left_ms

    async def _leave(self, place: Place, known: bytes, token: bytes, absent_ms: int, sent: Sent) -> bool:
        try:
            return bool(await LEAVE(
                self._valkey, keys=(place.version, place.recent, place.lock), args=(known, token, absent_ms, *sent)
            ))
        except Unavailable:
            return True  # the lock ends by itself

    # -- the source -------------------------------------------------------------------------------------------------

    async def _load(self, flight: Flight[T], known: bytes, token: bytes) -> tuple[bool, bytes | None]:
        """Read the source under the lock, keep and send what it gave; False if a purge came in between."""
        family, place = self._family, flight.place
        loop = asyncio.get_running_loop()
        begun_at, stamp = loop.time(), max(round(self._clock.now() * 1_000_000), int(known or b"0"))
        purge = self._sending(place, None, stamp)
        try:
            raw, seconds, until = await self._from_source(flight)
        except BaseException:
            # Whoever waits elsewhere tries for itself; but a stale value that they have must not be lost by this.
            await self._leave(place, known, token, 0, NOBODY if flight.refresh else purge)
            raise
        if loop.time() - begun_at > family.version_seconds / 2:
            await self._leave(place, known, token, 0, NOBODY)  # a purge of so long ago may be forgotten by now
            return True, raw
        if raw is None:
            kept = await self._leave(place, known, token, round(family.negative_seconds * 1000), purge)
            if kept:
                self._keep(flight, None, family.negative_seconds)
            return kept, None
        value_ms = round((seconds + family.stale_seconds) * 1000) if family.shared_seconds is not None else 0
        recent_ms = round(family.recent_seconds * 1000) if family.pushes and not value_ms else 0
        sent = self._sending(place, raw, stamp, until)
        try:
            kept = bool(await FILL(
                self._valkey, keys=place.keys, args=(known, token, value_ms, recent_ms, raw, str(stamp), *sent)
            ))
        except Unavailable:
            return True, raw
        if kept:
            self._keep(flight, raw, seconds)
        return kept, raw

    async def _from_source(self, flight: Flight[T]) -> tuple[bytes | None, float, float | None]:
        """The source's value as bytes, for how many seconds it is fresh, and until when if the source said so."""
        family = self._family
        counts.add("cache_loads", family=family.name)
        loaded = await flight.load()
        declared = family.shared_seconds if family.shared_seconds is not None else (family.local_seconds or 0.0)
        seconds, until = declared + random.uniform(0, family.jitter_seconds), None
        if isinstance(loaded, Loaded):
            seconds = min(seconds, max(loaded.seconds, 0.001))
            until = self._clock.now() + seconds
            loaded = loaded.value
        raw = None if loaded is None else family.codec.encode(loaded)
        if family.marked and raw == MARKER:
            raise DeclarationError(f"{family.name}: a value may not look like the in-flight marker 1")
        return raw, seconds, until

    async def _alone(self, flight: Flight[T]) -> bytes | None:
        """The server is away: the source answers, and what it says is only held here."""
        counts.add("cache_server_away", family=self._family.name)
        raw, seconds, _ = await self._from_source(flight)
        self._keep(flight, raw, seconds if raw is not None else self._family.negative_seconds)
        return raw

    def _sending(self, place: Place, raw: bytes | None, stamp: int, until: float | None = None) -> Sent:
        return sending(
            self._family.pushes, self._channel, self._valkey.layout, Push(place.arguments, raw, stamp, until)
        )

    # -- keeping ----------------------------------------------------------------------------------------------------

    def _fresh_seconds(self, left_ms: int) -> float | None:
        return None if left_ms < 0 else left_ms / 1000 - self._family.stale_seconds

    def _keep(self, flight: Flight[T], raw: bytes | None, seconds: float | None) -> None:
        """Hold a value in the process, unless a purge of it was heard, or may have been missed, meanwhile."""
        if not self._shelf.is_open() or flight.purged:  # asked first: it may notice a gap just now
            return
        if not self._family.collab or self._shelf.generation == flight.generation:
            self._shelf.put(flight.place.key, raw, seconds)
