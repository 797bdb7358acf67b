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
from keystead.errors import Invalid, Unavailable
from keystead.keys.slots import SLOTS
from keystead.settings import ValkeySettings

REFRESH_PAUSE_SECONDS = 0.1
STAGGER_SECONDS = 0.3  # a node that says nothing for this long does not keep the next from being asked
NODE_PATIENCE_SECONDS = 0.25  # a dead node is not waited for: its replacement may be known in a moment
DRAIN_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class Node:
    """One node: its wire and its connections for blocking commands."""

    def __init__(
        self, endpoint: Endpoint, settings: ValkeySettings, make_pool: Callable[[Endpoint], ConnectionPool]
    ) -> None:
        self.endpoint = endpoint
        self.wire = Wire(self.find, settings)
        self.dedicated = Dedicated(self.find, replace(settings, outage_seconds=NODE_PATIENCE_SECONDS))
        self._make_pool = make_pool
        self._pool: ConnectionPool | None = None
        self._loaded_scripts: set[str] = set()
        self._loaded_at = 0

    async def find(self) -> Endpoint:
        return self.endpoint

    @property
    def pool(self) -> ConnectionPool:
        """redis-py's pool for this node, made when WATCH first needs it."""
        if self._pool is None:
            self._pool = self._make_pool(self.endpoint)
        return self._pool

    @property
    def loaded_scripts(self) -> set[str]:
        """Hashes of scripts that this node has run since its wire was last lost."""
        if self._loaded_at != self.wire.generation:
            self._loaded_at = self.wire.generation
            self._loaded_scripts.clear()
        return self._loaded_scripts

    @property
    def busy(self) -> bool:
        """Whether someone waits for an answer of this node."""
        connection = self.wire.connection
        return self.dedicated.lent > 0 or (connection is not None and connection.waiting_commands > 0)

    async def retire(self) -> None:
        """Close once what is under way was answered: a caller must not lose its reply because the map changed."""
        try:
            for _ in range(int(DRAIN_SECONDS / _LOOK_SECONDS)):
                if not self.busy:
                    break
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            await self.aclose()

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
        self.primaries: list[Node] = []
        self.nodes: dict[tuple[str, int], Node] = {}
        self.places: KeyPlaces | None = None
        self.on_change: Callable[[], None] | None = None
        self.last_problem = ""
        self.refreshes = 0
        self._seeds = seeds
        self._settings = settings
        self._make_pool = make_pool
        self.closed = False
        self._stale = False
        self._refreshing: asyncio.Task[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()

    def check_open(self) -> None:
        """Raises when waiting is in vain."""
        if self.closed:
            raise ServerAway("the client was closed; open a new one with connect()")

    def any_node(self) -> Node:
        """Some primary, a connected one if there is one."""
        if not self.primaries:
            raise ServerAway("no node of the cluster is known yet: await open()")
        connected = [node for node in self.primaries if node.wire.connection is not None]
        return random.choice(connected or self.primaries)

    def node_at(self, host: str, port: int) -> Node:
        """The node at that address, known already or just heard of."""
        node = self.nodes.get((host, port))
        if node is None:
            endpoint = replace(self._seeds[0], host=host, port=port, tls_host=None)
            node = self.nodes[host, port] = Node(endpoint, self._settings, self._make_pool)
        return node

    def redirected(self, error: redis.exceptions.AskError, by: Node | None) -> Node:
        """The node that a MOVED or ASK names. An empty host means: the one that answered."""
        return self.node_at(error.host or (by.endpoint.host if by else self._seeds[0].host), error.port)

    def moved(self, error: redis.exceptions.MovedError, by: Node | None) -> Node:
        """A node said that a slot lives elsewhere now."""
        node = self.redirected(error, by)
        self.owners[error.slot_id] = node
        if node not in self.primaries:
            self.primaries.append(node)
        self.refresh_soon()
        return node

    # -- refreshing -------------------------------------------------------------------------------------------------

    def refresh_soon(self) -> None:
        """Ask for the slot map in the background; a wish that comes during a refresh gets another one after it."""
        self._stale = True
        if not self.closed and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._keep_fresh(), name="keystead topology")

    async def _keep_fresh(self) -> None:
        while self._stale:
            self._stale = False
            try:
                await self.refresh()
            except (Unavailable, Invalid) as error:
                self.last_problem = str(error)
            # A cluster in trouble is not asked in a tight loop.
            await asyncio.sleep(REFRESH_PAUSE_SECONDS)

    async def refresh(self) -> None:
        """Take the slot map of the first node that gives one. Raises what is wrong when none does."""
        waiting = self._whom_to_ask()
        problems: list[Exception] = []
        asking: dict[asyncio.Task[Reply], Endpoint] = {}
        try:
            while waiting or asking:
                if waiting:
                    endpoint = waiting.pop(0)
                    asking[asyncio.get_running_loop().create_task(self._ask(endpoint))] = endpoint
                done, _ = await asyncio.wait(
                    asking, timeout=STAGGER_SECONDS if waiting else None, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    endpoint = asking.pop(task)
                    try:
                        answer = task.result()
                    except (Unavailable, NotSent, redis.exceptions.ResponseError) as error:
                        problems.append(error)
                        continue
                    if self._take(answer, endpoint):
                        return
                    problems.append(ServerAway(f"{endpoint.display} knows no slots yet"))
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        for problem in problems:
            if isinstance(problem, LoginRefused | ServerTooOld):
                raise problem
        reasons = dict.fromkeys(str(problem) or "the connection broke" for problem in problems)
        raise ServerAway(f"no node of the cluster answered: {'; '.join(reasons)}")

    def _whom_to_ask(self) -> list[Endpoint]:
        """Nodes that are connected first, in any order, so that one with an old map does not always win."""
        connected = [node.endpoint for node in self.nodes.values() if node.wire.connection is not None]
        others = [node.endpoint for node in self.nodes.values() if node.wire.connection is None]
        random.shuffle(connected)
        by_address = {(each.host, each.port): each for each in [*connected, *self._seeds, *others]}
        return list(by_address.values())

    async def _ask(self, endpoint: Endpoint) -> Reply:
        connection = await open_connection(endpoint, self._settings, on_lost=lambda *_: None)
        try:
            if self.places is None:
                self.places = KeyPlaces(await connection.send(pack(("COMMAND",))))
            return await connection.send(pack(("CLUSTER", "SLOTS")))
        except redis.exceptions.ResponseError as error:
            if "cluster support disabled" in str(error):
                raise Invalid(
                    f"{endpoint.display} is not part of a cluster; write its address as valkey://{endpoint.display}"
                ) from error
            raise
        except AnswerLost as error:
            raise ServerAway(f"{endpoint.display} went away: {error}") from error
        finally:
            connection.abort("was asked for the slot map only")

    def _take(self, answer: Reply, asked: Endpoint) -> bool:
        owners: list[Node | None] = [None] * SLOTS
        primaries: dict[Node, None] = {}
        for first, last, primary, *_ in answer:
            # No host, or a question mark, means: the one you asked.
            host = primary[0].decode() if primary[0] else "?"
            node = self.node_at(asked.host if host == "?" else host, int(primary[1]))
            primaries[node] = None
            owners[int(first) : int(last) + 1] = [node] * (int(last) - int(first) + 1)
        if not primaries:
            return False
        self.refreshes += 1
        changed = owners != self.owners
        self.owners = owners
        self.primaries = list(primaries)
        for address in [address for address, node in self.nodes.items() if node not in primaries]:
            self._retire(address)
        if changed and self.on_change is not None:
            self.on_change()
        return True

    def _retire(self, address: tuple[str, int]) -> None:
        task = asyncio.get_running_loop().create_task(self.nodes.pop(address).retire(), name="keystead retire node")
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def aclose(self) -> None:
        self.closed = True
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        await asyncio.gather(*(node.aclose() for node in self.nodes.values()))
        for task in list(self._retiring):
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
