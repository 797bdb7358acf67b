"""A cache family as one process uses it: what it holds, what is under way, and what it hears."""

import asyncio
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.keys import ChannelRef, Layout, Undecodable, Value
from keystead.keys.template import Template
from keystead.patterns.cache_disk import DiskTier
from keystead.patterns.cache_ear import Ear
from keystead.patterns.cache_family import Family, Place
from keystead.patterns.cache_fetch import Fetcher
from keystead.patterns.cache_flight import Flight, Load
from keystead.patterns.cache_frames import Push
from keystead.patterns.cache_process import Entry, ProcessTier
from keystead.patterns.cache_shelf import Shelf
from keystead.telemetry import counts, logger

T = TypeVar("T")

MOST_PLACES = 20_000  # remembered names of values

counts.describe("cache_refreshes_failed", "stale values whose refresh failed")

_log = logger("patterns")


class Names(Protocol):
    """The declaration, as far as an instance needs it."""

    @property
    def template(self) -> Template: ...

    def place(self, arguments: Mapping[str, str], layout: Layout) -> Place: ...


class CacheInstance(Generic[T]):
    """Reads through process, disk, server and source, in this order; ``Cache.open`` makes it."""

    def __init__(
        self, names: Names, family: Family[T], valkey: Valkey, channel: ChannelRef[Push] | None, process: ProcessTier,
        disk: DiskTier | None, clock: Clock,
    ) -> None:
        self._names, self._family, self._clock = names, family, clock
        self._layout = valkey.layout
        self._decode = family.codec.decode
        self._shelf = Shelf(family, names.template, process, disk, clock)
        raw_channel = b"" if channel is None else channel.name(valkey.layout)
        self._fetcher = Fetcher(family, valkey, raw_channel, self._shelf, clock)
        if channel is not None:
            self._shelf.ear = Ear(
                valkey, channel, names.template, trust_seconds=family.staleness_seconds,
                drops=family.collab, on_push=self._on_push, on_gap=self._on_gap,
            )
        self._valkey = valkey
        self._local = family.local_seconds is not None
        self._plainly = not (family.sliding or family.stale_seconds or family.marked)
        self._places: dict[tuple[Value, ...], Place] = {}
        self._flights: dict[str, Flight[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        if self._shelf.ear is not None:
            await self._shelf.ear.start()

    async def aclose(self) -> None:
        if self._shelf.ear is not None:
            await self._shelf.ear.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- reading ----------------------------------------------------------------------------------------------------

    async def get(self, *variables: Value, load: Load[T]) -> T | None:
        """The value, or None if the source has none.

        ``load`` reads the source; of all callers in all instances that miss the same value one runs it, and its error
        is raised to whoever waited for it in this process. With the server away the source is read directly.
        """
        place = self._places.get(variables) or self._place(variables)
        if self._local:
            now = self._clock.now()
            entry = self._shelf.get(place.key, now)
            raw = self._used(place, entry, load, now)
            if raw is None and entry is not None:
                return None
        elif self._plainly:
            # The same as ``_stored``, written out: two coroutines less are a good part of what a hit costs.
            try:
                raw = await self._valkey.call(("GET", place.value), repeat=True)
            except Unavailable:
                raw = None
        else:
            raw = await self._stored(place, load)
        if raw is not None:
            try:
                return self._decode(raw)
            except Undecodable:
                await self._spoiled(place, raw)
        raw = await self._fetched(place, load)
        return None if raw is None else self._decode(raw)

    async def get_raw(self, *variables: Value, load: Load[T]) -> bytes | None:
        """As ``get``, the bytes as they are kept: to send them on without decoding. They are not checked."""
        place = self._places.get(variables) or self._place(variables)
        if self._local:
            now = self._clock.now()
            entry = self._shelf.get(place.key, now)
            raw = self._used(place, entry, load, now)
            if entry is not None:
                return raw
        else:
            raw = await self._stored(place, load)
        return raw if raw is not None else await self._fetched(place, load)

    def held(self, *variables: Value) -> bytes | None:
        """What this process holds of a value and may use now; asks nobody."""
        place = self._places.get(variables) or self._place(variables)
        entry = self._shelf.get(place.key, self._clock.now())
        return None if entry is None else entry.raw

    def _place(self, variables: tuple[Value, ...]) -> Place:
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        place = self._names.place(self._names.template.bind(variables, {}), self._layout)
        self._places[variables] = place
        return place

    def _used(self, place: Place, entry: Entry | None, load: Load[T], now: float) -> bytes | None:
        if entry is None:
            return None
        if entry.fresh_until <= now:
            self._refresh(place, load)
        return entry.raw

    async def _stored(self, place: Place, load: Load[T]) -> bytes | None:
        """What the server has, for a family that is not held in the process."""
        try:
            raw, left_ms = await self._fetcher.read(place)
        except Unavailable:
            return None
        if raw is not None and 0 <= left_ms <= self._family.stale_ms:
            self._refresh(place, load)
        return raw

    async def _spoiled(self, place: Place, raw: bytes) -> None:
        """A value does not decode: a miss. It is dropped here, and on the server if it is still the same."""
        self._shelf.forget(place.key)
        if self._family.shared_seconds is None:
            counts.add("cache_undecodable", family=self._family.name)
            return
        try:
            await self._fetcher.discard(place, raw)
        except Unavailable:
            return

    # -- fetching ---------------------------------------------------------------------------------------------------

    async def _fetched(self, place: Place, load: Load[T]) -> bytes | None:
        flight = self._flights.get(place.key) or self._take_off(place, load, refresh=False)
        flight.joined += 1
        # One waiter's cancellation must not end the fetch for the others.
        return await asyncio.shield(flight.landed)

    def _refresh(self, place: Place, load: Load[T]) -> None:
        if place.key not in self._flights:
            self._take_off(place, load, refresh=True)

    def _take_off(self, place: Place, load: Load[T], *, refresh: bool) -> Flight[T]:
        flight = Flight(place, load, refresh=refresh, generation=self._shelf.generation)
        self._flights[place.key] = flight
        task = asyncio.get_running_loop().create_task(self._fly(flight), name=f"keystead cache {self._family.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return flight

    async def _fly(self, flight: Flight[T]) -> None:
        key = flight.place.key
        try:
            flight.land(await self._fetcher.bring(flight))
        except asyncio.CancelledError:
            flight.fail(Unavailable("the cache was closed while the value was fetched"))
            raise
        except BaseException as error:  # whatever the loader raised belongs to those who wait for it
            flight.fail(error)
            if flight.refresh:
                counts.add("cache_refreshes_failed", family=self._family.name)
                _log.warning("stale value not refreshed", family=self._family.name, reason=type(error).__name__)
                self._shelf.postpone(key)
        finally:
            if self._flights.get(key) is flight:
                del self._flights[key]

    # -- hearing ----------------------------------------------------------------------------------------------------

    def forget(self, *variables: Value) -> None:
        """Drop what this process holds of a value, and let the next reader fetch it anew.

        For the process that purged: its own next read need not wait for the message.
        """
        self._forget((self._places.get(variables) or self._place(variables)).key)

    def _forget(self, key: str) -> None:
        self._shelf.forget(key)
        flight = self._flights.get(key)
        if flight is not None and flight.waiting:
            flight.wake()
        elif flight is not None:
            flight.purged = True
            del self._flights[key]

    def _on_push(self, key: str | None, push: Push) -> None:
        if key is None:
            self._shelf.forget_where(push.arguments)
            for each in [each for each in self._flights if self._shelf.fits(each, push.arguments)]:
                self._forget(each)
        elif push.raw is None:
            self._forget(key)
        else:
            seconds = None if push.until is None else push.until - self._clock.now()
            self._shelf.put(key, push.raw, seconds)
            flight = self._flights.get(key)
            if flight is not None and not (self._shelf.ear is not None and self._shelf.ear.hears()):
                flight.wake()  # the message may be late, and a purge behind it
            elif flight is not None and self._fetcher.readable(push.raw):
                del self._flights[key]
                flight.purged = True  # whatever it still brings is no newer than this
                flight.land(push.raw)

    def _on_gap(self) -> None:
        """Messages may have been missed: drop what they may have made wrong, and let who waits look again."""
        self._shelf.forget_collab()
        for flight in self._flights.values():
            flight.wake()
