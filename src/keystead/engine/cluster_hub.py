"""Publish and subscribe on a cluster: shard channels are listened to where their slot lives, and move with it."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import redis.exceptions

from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import ServerAway
from keystead.engine.hub import SHARDED, ChannelReference, GlobReference, Hub, is_elsewhere, wanted
from keystead.engine.listener import Listener
from keystead.engine.topology import Node, Topology
from keystead.errors import Unavailable
from keystead.keys.layout import Layout
from keystead.keys.slots import key_slot
from keystead.settings import ValkeySettings

_PAUSE_SECONDS = 0.05
_NODE_PATIENCE_SECONDS = 1.0


class ClusterHub:
    """One hub for plain channels, which any node serves, and one per node for the shard channels of its slots."""

    def __init__(self, topology: Topology, settings: ValkeySettings, *, layout: Layout) -> None:
        self._topology = topology
        self._settings = settings
        self._layout = layout
        self._plain = Hub(self._finder(lambda: topology.any_node().endpoint), settings)
        self._by_node: dict[Node, Hub] = {}
        # Shard channels that lost their node and found no other yet: since when, and who listens.
        self._adrift: dict[bytes, tuple[float, set[Listener]]] = {}
        self._interrupted: set[Listener] = set()  # to be told of one gap when all their channels are back
        self._lost_at = math.inf  # since when the first of them may have missed messages
        self._stale = False
        self._closed = False
        self._moving: asyncio.Task[None] | None = None
        topology.on_change = self._on_change

    def _finder(self, endpoint: Callable[[], Endpoint]) -> Callable[[], Awaitable[Endpoint]]:
        """Where to connect. Looking for a second time means that the node was lost, so the map may be old."""
        looked_before = False

        async def find() -> Endpoint:
            nonlocal looked_before
            if looked_before:
                self._topology.refresh_soon()
            looked_before = True
            return endpoint()

        return find

    @property
    def silent_seconds(self) -> float:
        """The longest silence of any connection that has listeners."""
        now = asyncio.get_running_loop().time()
        hubs = [hub for hub in (self._plain, *self._by_node.values()) if hub.listeners]
        adrift = [now - since for since, _ in self._adrift.values()]
        untold = [now - self._lost_at] if self._interrupted else []
        return max((*(hub.silent_seconds for hub in hubs), *adrift, *untold), default=0.0)

    @property
    def listeners(self) -> int:
        found = {each for _, group in self._adrift.values() for each in group}
        for hub in (self._plain, *self._by_node.values()):
            found |= hub.all()
        return len(found)

    @asynccontextmanager
    async def subscribe(
        self,
        *channels: bytes | str | ChannelReference,
        patterns: Iterable[bytes | str | GlobReference] = (),
        sharded: Iterable[bytes | str] = (),
        most_messages: int = 1000,
        most_bytes: int = 8 * 1024 * 1024,
        on_gap: Callable[[], None] | None = None,
    ) -> AsyncIterator[Listener]:
        """As ``Hub.subscribe``. A shard channel follows its slot; the listener is told of the gap."""
        listener = Listener(most_messages, most_bytes, on_gap)
        names = wanted(channels, patterns, sharded, self._layout)
        plain = [each for each in names if each[0] is not SHARDED]
        try:
            if plain:
                await self._plain.join(listener, plain)
            for name in [name for way, name in names if way is SHARDED]:
                await self._settle(listener, name)
            listener.inside = True
            yield listener
        finally:
            listener.close()
            self._plain.leave(listener)
            for hub in self._by_node.values():
                hub.leave(listener)
            for _, group in self._adrift.values():
                group.discard(listener)

    async def _settle(self, listener: Listener, name: bytes) -> None:
        """Join where the slot lives; looks again until the outage limit is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.outage_seconds
        while True:
            try:
                await self._join(listener, name)
                return
            except ServerAway:
                self._topology.refresh_soon()
                if self._closed or loop.time() + _PAUSE_SECONDS > deadline:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _join(self, listener: Listener, name: bytes) -> None:
        """One try. Raises ``ServerAway`` when the slot has no node that takes us now."""
        node = self._topology.owners[key_slot(name)]
        if node is None:
            raise ServerAway("no node serves the slot of this channel")
        if self._closed:
            raise ServerAway("the client was closed; open a new one with connect()")
        hub = self._by_node.get(node)
        if hub is None:
            find = self._finder(lambda: node.endpoint)
            hub = self._by_node[node] = Hub(find, self._settings, on_moved=lambda name: self._lose(node, name))
        try:
            await hub.join(listener, [(SHARDED, name)], patience_seconds=_NODE_PATIENCE_SECONDS)
        except Unavailable:
            hub.drop(listener, name)
            raise
        except redis.exceptions.ResponseError as error:
            hub.drop(listener, name)
            if not is_elsewhere(error):
                raise
            if isinstance(error, redis.exceptions.MovedError):
                self._topology.moved(error, node)
            raise ServerAway(f"the slot of this channel is on its way: {error}") from error

    # -- following the slots ----------------------------------------------------------------------------------------

    def _lose(self, node: Node, name: bytes) -> None:
        """A node does not serve this channel any more."""
        if node in self._by_node:
            self._set_adrift(self._by_node[node], name)
        self._topology.refresh_soon()
        self._on_change()

    def _set_adrift(self, hub: Hub, name: bytes) -> None:
        # A node is found dead some time after it was last heard, and that is when messages began to be missed.
        lost_at = asyncio.get_running_loop().time() - hub.silent_seconds
        since, group = self._adrift.get(name, (lost_at, set()))
        self._lost_at = min(self._lost_at, since)
        group |= hub.release(name)
        self._adrift[name] = since, group
        self._interrupted |= group

    def _on_change(self) -> None:
        """The slot map changed: shard channels follow their slots."""
        self._stale = True
        if not self._closed and (self._moving is None or self._moving.done()):
            loop = asyncio.get_running_loop()
            self._moving = loop.create_task(self._follow_slots(), name="keystead move subscriptions")

    async def _follow_slots(self) -> None:
        while self._stale or self._adrift:
            self._stale = False
            for node, hub in list(self._by_node.items()):
                for name in hub.sharded():
                    if self._topology.owners[key_slot(name)] is not node:
                        self._set_adrift(hub, name)
                if node not in self._topology.primaries and not hub.listeners:
                    del self._by_node[node]
                    await hub.aclose()
            away: set[Node | None] = set()
            for name in list(self._adrift):
                await self._take_ashore(name, away)
            waiting = {listener for _, group in self._adrift.values() for listener in group}
            for listener in self._interrupted - waiting:
                listener.note_gap()
            self._interrupted &= waiting
            if not self._interrupted:
                self._lost_at = math.inf
            if self._adrift:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _take_ashore(self, name: bytes, away: set[Node | None]) -> None:
        """Let everyone who listened to this channel join its new node. Who could not stays adrift.

        A node that did not take one is not tried with the others this time: that could last forever.
        """
        _, group = self._adrift[name]
        owner = self._topology.owners[key_slot(name)]
        if owner in away and group:
            return
        try:
            for listener in list(group):
                if not listener.closed:
                    await self._join(listener, name)
                group.discard(listener)
        except Unavailable:
            away.add(owner)
            self._topology.refresh_soon()
        except redis.exceptions.ResponseError as error:
            for listener in list(group):
                listener.fail(error)
            group.clear()
        if not group:
            del self._adrift[name]

    async def aclose(self) -> None:
        self._closed = True
        if self._moving is not None:
            self._moving.cancel()
            await asyncio.gather(self._moving, return_exceptions=True)
        for _, group in self._adrift.values():
            for listener in group:
                listener.close()
        await self._plain.aclose()
        for hub in list(self._by_node.values()):
            await hub.aclose()
