"""Which node of a cluster serves which slot, kept true while the cluster changes."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import redis.exceptions
from redis.asyncio.connection import ConnectionPool

from keystead.engine.commands import pack
from keystead.engine.connection import Reply
from keystead.engine.dedicated import Dedicated
from keystead.engine.endpoint import Endpoint, open_connection
from keystead.engine.failures import AnswerLost, LoginRefused, NotSent, ServerAway, ServerTooOld
from keystead.engine.key_places import KeyPlaces
from keystead.engine.wire import Wire
from keystead.errors import Invalid
from keystead.keys.slots import SLOTS
from keystead.settings import ValkeySettings
from keystead.telemetry import logger

REFRESH_PAUSE_SECONDS = 0.1

_log = logger("engine")


class Node:
    """One node: its wire and its connections for blocking commands."""

    def __init__(
        self, endpoint: Endpoint, settings: ValkeySettings, make_pool: Callable[[Endpoint], ConnectionPool]
    ) -> None:
        self.endpoint = endpoint
        self.wire = Wire(self.find, settings)
        self.dedicated = Dedicated(self.find, settings)
        self._make_pool = make_pool
        self._pool: ConnectionPool | None = None

    async def find(self) -> Endpoint:
        return self.endpoint

    @property
    def pool(self) -> ConnectionPool:
        """redis-py's pool for this node, made when WATCH first needs it."""
        if self._pool is None:
            self._pool = self._make_pool(self.endpoint)
        return self._pool

    async def aclose(self) -> None:
        await self.wire.aclose()
        await self.dedicated.aclose()
        if self._pool is not None:
            await self._pool.aclose()


class Topology:
    """The slot map. ``owners[slot]`` is the node to ask; a refresh asks any node that answers."""

    def __init__(
        self, seeds: list[Endpoint], settings: ValkeySettings, make_pool: Callable[[Endpoint], ConnectionPool]
    ) -> None:
        self.owners: list[Node | None] = [None] * SLOTS
        self.nodes: dict[tuple[str, int], Node] = {}
        self.places: KeyPlaces | None = None
        self.on_change: Callable[[], None] | None = None
        self.last_problem = ""
        self._seeds = seeds
        self._settings = settings
        self._make_pool = make_pool
        self._refreshing: asyncio.Task[None] | None = None
        self._retired: set[asyncio.Task[None]] = set()

    @property
    def primaries(self) -> list[Node]:
        return list(dict.fromkeys(node for node in self.owners if node is not None))

    def any_node(self) -> Node:
        """Some primary, a connected one if there is one."""
        primaries = self.primaries
        connected = [node for node in primaries if node.wire.connection is not None]
        return random.choice(connected or primaries)

    def node_at(self, host: str, port: int) -> Node:
        """The node at that address, known already or just heard of."""
        node = self.nodes.get((host, port))
        if node is None:
            endpoint = replace(self._seeds[0], host=host, port=port, tls_host=None)
            node = self.nodes[host, port] = Node(endpoint, self._settings, self._make_pool)
        return node

    def moved(self, slot: int, host: str, port: int) -> Node:
        """A node said that this slot lives elsewhere now."""
        node = self.owners[slot] = self.node_at(host, port)
        self.refresh_soon()
        return node

    def refresh_soon(self) -> "asyncio.Task[None]":
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh_gently(), name="keystead topology")
        return self._refreshing

    async def _refresh_gently(self) -> None:
        try:
            await self.refresh()
        except ServerAway as error:
            self.last_problem = str(error)
        # Whoever fails meanwhile waits for the next round: a cluster in trouble is not asked in a tight loop.
        await asyncio.sleep(REFRESH_PAUSE_SECONDS)

    async def refresh(self) -> None:
        """Ask the nodes, one after another, until one gives a slot map. Raises ``ServerAway`` when none does."""
        known = [node.endpoint for node in self.nodes.values() if node.wire.connection is not None]
        others = [node.endpoint for node in self.nodes.values() if node.wire.connection is None]
        problems = []
        for endpoint in [*known, *self._seeds, *others]:
            try:
                connection = await open_connection(endpoint, self._settings, on_lost=lambda *_: None)
                try:
                    if self.places is None:
                        self.places = KeyPlaces(await connection.send(pack(("COMMAND",))))
                    answer = await connection.send(pack(("CLUSTER", "SLOTS")))
                finally:
                    connection.abort("was asked for the slot map only")
            except (LoginRefused, ServerTooOld):
                raise
            except (ServerAway, AnswerLost, NotSent) as error:
                problems.append(str(error))
                continue
            except redis.exceptions.ResponseError as error:
                if "cluster support disabled" in str(error):
                    raise Invalid(
                        f"{endpoint.display} is not part of a cluster; write its address as valkey://{endpoint.display}"
                    ) from error
                problems.append(str(error))
                continue
            if self._take(answer, endpoint):
                return
            problems.append(f"{endpoint.display} knows no slots yet")
        raise ServerAway(f"no node of the cluster answered: {'; '.join(dict.fromkeys(problems))}")

    def _take(self, answer: Reply, asked: Endpoint) -> bool:
        owners: list[Node | None] = [None] * SLOTS
        for first, last, primary, *_ in answer:
            # An empty host means: the one you asked.
            host = primary[0].decode() if primary[0] else asked.host
            node = self.node_at(asked.host if host == "?" else host, int(primary[1]))
            owners[int(first) : int(last) + 1] = [node] * (int(last) - int(first) + 1)
        if not any(owners):
            return False
        changed = owners != self.owners
        self.owners = owners
        for address in set(self.nodes) - {key for key, node in self.nodes.items() if node in set(owners)}:
            self._retire(address)
        if changed and self.on_change is not None:
            self.on_change()
        return True

    def _retire(self, address: tuple[str, int]) -> None:
        """Close a node that serves no slot any more; callers that still wait there are told and ask again."""
        node = self.nodes.pop(address)
        task = asyncio.get_running_loop().create_task(node.aclose(), name="keystead retire node")
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)

    async def aclose(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        await asyncio.gather(*(node.aclose() for node in self.nodes.values()), *self._retired)
