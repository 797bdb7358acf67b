"""Publish and subscribe on a cluster: shard channels are listened to where their slot lives, and move with it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import ServerAway
from keystead.engine.hub import SHARDED, Hub, Listener, wanted
from keystead.engine.topology import Node, Topology
from keystead.keys.slots import key_slot
from keystead.settings import ValkeySettings
from keystead.telemetry import logger

_log = logger("engine")


class ClusterHub:
    """One hub for plain channels, which any node serves, and one per node for the shard channels of its slots."""

    def __init__(self, topology: Topology, settings: ValkeySettings) -> None:
        self._topology = topology
        self._settings = settings
        self._plain = Hub(self._find_any, settings)
        self._by_node: dict[Node, Hub] = {}
        self._moving: set[asyncio.Task[None]] = set()
        topology.on_change = self._on_change

    async def _find_any(self) -> Endpoint:
        return self._topology.any_node().endpoint

    @property
    def silent_seconds(self) -> float:
        """The longest silence of any connection that has listeners."""
        hubs = [hub for hub in (self._plain, *self._by_node.values()) if hub.listeners]
        return max((hub.silent_seconds for hub in hubs), default=0.0)

    @property
    def listeners(self) -> int:
        return self._plain.listeners + sum(hub.listeners for hub in self._by_node.values())

    @asynccontextmanager
    async def subscribe(
        self,
        *channels: bytes | str,
        patterns: Iterable[bytes | str] = (),
        sharded: Iterable[bytes | str] = (),
        most_messages: int = 1000,
        most_bytes: int = 8 * 1024 * 1024,
        on_gap: Callable[[], None] | None = None,
    ) -> AsyncIterator[Listener]:
        """As ``Hub.subscribe``."""
        listener = Listener(most_messages, most_bytes, on_gap)
        try:
            plain = wanted(channels, patterns, ())
            if plain:
                await self._plain.join(listener, plain)
            for _, name in wanted((), (), sharded):
                await self._join_shard(listener, name)
            yield listener
        finally:
            self._plain.leave(listener)
            for hub in self._by_node.values():
                hub.leave(listener)

    async def _join_shard(self, listener: Listener, name: bytes) -> None:
        node = self._topology.owners[key_slot(name)]
        if node is None:
            raise ServerAway("no node serves the slot of this channel")
        hub = self._by_node.get(node)
        if hub is None:
            hub = self._by_node[node] = Hub(node.find, self._settings, on_moved=self._on_moved)
        await hub.join(listener, [(SHARDED, name)])

    def _on_moved(self, name: bytes) -> None:
        self._topology.refresh_soon()
        self._on_change()

    def _on_change(self) -> None:
        """The slot map changed: shard channels follow their slots."""
        task = asyncio.get_running_loop().create_task(self._rebalance(), name="keystead move subscriptions")
        self._moving.add(task)
        task.add_done_callback(self._moving.discard)

    async def _rebalance(self) -> None:
        for node, hub in list(self._by_node.items()):
            for name, group in hub.sharded().items():
                if self._topology.owners[key_slot(name)] is node:
                    continue
                for listener in group:
                    hub.forget(listener, name)
                    try:
                        await self._join_shard(listener, name)
                        listener.note_gap()
                    except ServerAway as error:
                        _log.warning("subscription could not follow its slot", reason=str(error))
            if node not in self._topology.primaries:
                del self._by_node[node]
                await hub.aclose()

    async def aclose(self) -> None:
        for task in list(self._moving):
            task.cancel()
        await asyncio.gather(*self._moving, return_exceptions=True)
        await self._plain.aclose()
        for hub in self._by_node.values():
            await hub.aclose()
