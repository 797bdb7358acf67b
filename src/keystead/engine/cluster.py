"""A cluster as one client: each command goes to the node that serves its slot, and follows when the slot moves."""

import asyncio
from collections.abc import Sequence
from typing import Any

import redis.exceptions

from keystead.engine.client import NOT_YET, Valkey
from keystead.engine.cluster_hub import ClusterHub
from keystead.engine.cluster_pipeline import ClusterPipeline, Unit, units_of
from keystead.engine.commands import blocks, full_name, pack, plan
from keystead.engine.connect_pool import redis_pool
from keystead.engine.connection import Connection
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import AnswerLost, NotSent, ServerAway
from keystead.engine.topology import Node, Topology
from keystead.engine.wire import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from keystead.errors import Invalid
from keystead.keys.executor import Reply
from keystead.keys.layout import Layout
from keystead.keys.slots import key_slot
from keystead.settings import ValkeySettings
from keystead.telemetry import counts

# Errors that say where or when to ask instead; the command was not run.
REDIRECTS = (
    redis.exceptions.MovedError,
    redis.exceptions.AskError,
    redis.exceptions.TryAgainError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.ReadOnlyError,
    *NOT_YET,
)
_ALL_PRIMARIES = frozenset(
    ("CONFIG RESETSTAT", "CONFIG REWRITE", "CONFIG SET", "DBSIZE", "FLUSHALL", "FLUSHDB", "FUNCTION DELETE",
     "FUNCTION FLUSH", "FUNCTION LOAD", "KEYS", "SCRIPT EXISTS", "SCRIPT FLUSH", "SCRIPT KILL", "SCRIPT LOAD")
)  # fmt: skip
_SPLIT = frozenset(("DEL", "EXISTS", "MGET", "TOUCH", "UNLINK"))


class ClusterValkey(Valkey):
    """The same client over a cluster.

    One wire per node. MGET, DEL, UNLINK, EXISTS and TOUCH over several slots are split and put together again (not
    atomic); any other command must keep to one slot. Commands for the whole cluster (FLUSHALL, DBSIZE, SCRIPT LOAD…)
    go to every primary.
    """

    def __init__(self, seeds: list[Endpoint], *, settings: ValkeySettings, layout: Layout) -> None:
        self.topology = Topology(seeds, settings, redis_pool)
        self._cluster_hub: ClusterHub | None = None

        async def find() -> Endpoint:
            return self.topology.any_node().endpoint

        super().__init__(find, pool=redis_pool(seeds[0]), settings=settings, layout=layout)

    async def open(self) -> "ClusterValkey":
        await self.topology.refresh()
        await asyncio.gather(*(node.wire.open() for node in self.topology.primaries))
        return self

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        if self._cluster_hub is not None:
            await self._cluster_hub.aclose()
        await super().aclose()
        await self.topology.aclose()

    def hub(self) -> ClusterHub:  # type: ignore[override]
        if self._cluster_hub is None:
            self._cluster_hub = ClusterHub(self.topology, self.settings)
        return self._cluster_hub

    @property
    def facts(self) -> dict[str, str]:
        for node in self.topology.primaries:
            if node.wire.connection is not None:
                return node.wire.connection.facts
        return {}

    @property
    def in_flight_bytes(self) -> int:
        return sum(n.wire.connection.in_flight_bytes for n in self.topology.nodes.values() if n.wire.connection)

    @property
    def commands_sent(self) -> int:
        return sum(node.wire.commands for node in self.topology.nodes.values())

    async def nodes(self) -> list[Valkey]:
        return [NodeValkey(node, self) for node in self.topology.primaries]

    # -- one command ------------------------------------------------------------------------------------------------

    async def call(self, args: tuple[Any, ...], *, repeat: bool = False) -> Reply:
        key = self._first_key(args)
        if key is None:
            return await self._call_keyless(args, repeat)
        slot = key_slot(key)
        raw = pack(args)
        node = self.topology.owners[slot]
        connection = node.wire.connection if node is not None else None
        if connection is None or connection.congested:
            return await self._follow(raw, None, slot, repeat)
        try:
            return await connection.send(raw)
        except (NotSent, AnswerLost, *REDIRECTS) as error:
            if isinstance(error, redis.exceptions.ClusterCrossSlotError):
                raise
            return await self._follow(raw, None, slot, repeat, error)

    def _first_key(self, args: tuple[Any, ...]) -> bytes | None:
        if self.topology.places is None:
            raise ServerAway("the client is not open yet: await open()")
        if args[0] == "SPUBLISH":
            return args[1] if isinstance(args[1], bytes) else str(args[1]).encode()
        return self.topology.places.first(args)

    async def _follow(
        self, raw: bytes, replies: int | None, slot: int, repeat: bool, error: Exception | None = None
    ) -> Any:
        """The rare path: follow redirects, wait out failovers, until the outage limit is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.outage_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            asked: Node | None = None
            if isinstance(error, redis.exceptions.AskError):
                asked = self.topology.node_at(error.host, error.port)
            elif isinstance(error, redis.exceptions.MovedError):
                self.topology.moved(slot, error.host, error.port)
            elif isinstance(error, AnswerLost):
                counts.add("wire_answers_lost")
                self.topology.refresh_soon()
                if not repeat:
                    raise error
            elif error is not None:
                self.topology.refresh_soon()
                if loop.time() + pause > deadline:
                    raise ServerAway(f"the cluster cannot serve slot {slot}: {error or self.topology.last_problem}")
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS / 4)
            node = asked or self.topology.owners[slot]
            try:
                if node is None:
                    raise ServerAway(f"no node serves slot {slot}")
                # A dead primary is not waited for: its replacement may be known in a moment.
                connection = await node.wire.ready(len(raw), min(deadline, loop.time() + LONGEST_PAUSE_SECONDS / 4))
                if asked is not None:
                    return await _ask(connection, raw, replies)
                if replies is None:
                    return await connection.send(raw)
                outcome = await connection.send_block(raw, replies)
                refused = redirect_in(outcome)
                if refused is None:
                    return outcome
                error = refused
            except (NotSent, AnswerLost, *REDIRECTS) as problem:
                error = problem
            except ServerAway as problem:
                if loop.time() >= deadline:
                    raise
                error = problem

    async def _call_keyless(self, args: tuple[Any, ...], repeat: bool) -> Reply:
        name = full_name(args).upper()
        if name == "SCAN":
            raise Invalid("SCAN walks one node; use keystead.engine.scan, which walks them all")
        if name not in _ALL_PRIMARIES:
            return await self._call_node(self.topology.any_node(), pack(args), repeat)
        replies = await asyncio.gather(
            *(self._call_node(node, pack(args), repeat) for node in self.topology.primaries)
        )
        if name == "DBSIZE":
            return sum(replies)
        if name == "KEYS":
            return [key for reply in replies for key in reply]
        if name == "SCRIPT EXISTS":
            return [int(all(row)) for row in zip(*replies, strict=True)]
        return replies[0]

    async def _call_node(self, node: Node, raw: bytes, repeat: bool) -> Reply:
        deadline = asyncio.get_running_loop().time() + self.settings.outage_seconds
        while True:
            connection = await node.wire.ready(len(raw), deadline)
            try:
                return await connection.send(raw)
            except NotSent:
                continue
            except AnswerLost:
                if not repeat:
                    raise

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in _SPLIT and len(args) > 2:
            return await self._split(args)
        how = self._plans.get(args[0]) or self._plan(args)
        reply = await (self.call(args, repeat=how.repeat) if how.plain else self._special(args, how))
        return how.shape(reply, options)

    async def _split(self, args: tuple[Any, ...]) -> Any:
        """A command over many keys as one command per slot; the nodes work at the same time."""
        places = self.topology.places
        assert places is not None
        keys = places.all(args)
        slots: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            slots.setdefault(key_slot(key), []).append(place)
        repeat = args[0] in ("MGET", "EXISTS")
        parts = await asyncio.gather(
            *(self.call((args[0], *(keys[place] for place in group)), repeat=repeat) for group in slots.values())
        )
        if args[0] != "MGET":
            return sum(parts)
        values: list[Any] = [None] * len(keys)
        for group, part in zip(slots.values(), parts, strict=True):
            for place, value in zip(group, part, strict=True):
                values[place] = value
        return values

    async def _special(self, args: tuple[Any, ...], how: Any) -> Reply:
        name = full_name(args).upper()
        waits = not plan(name, {}).shared or (how.may_block and blocks(args))
        key = self._first_key(args) if waits and not how.stateful else None
        node = self.topology.owners[key_slot(key)] if key is not None else None
        if node is None:
            return await super()._special(args, how)
        while True:
            async with node.dedicated.borrow() as connection:
                try:
                    return await connection.send(pack(args))
                except redis.exceptions.MovedError as error:
                    node = self.topology.moved(key_slot(key or b""), error.host, error.port)
                except NotSent as error:
                    raise ServerAway("the connection broke before the command was sent") from error

    # -- many commands ----------------------------------------------------------------------------------------------

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> ClusterPipeline:
        """Commands that leave together, split by node. A transaction must keep to one slot."""
        return ClusterPipeline(self, transaction)

    async def call_block(self, commands: Sequence[tuple[Any, ...]], *, repeat: bool = False) -> list[Reply]:
        """Split by node, sent at the same time, put back in order. What lies inside MULTI and EXEC stays together."""
        units = units_of(commands, self._first_key)
        by_node: dict[Node | None, list[Unit]] = {}
        for unit in units:
            by_node.setdefault(self.topology.owners[unit.slot] if unit.slot is not None else None, []).append(unit)
        await asyncio.gather(*(self._send_units(node, group, repeat) for node, group in by_node.items()))
        return [reply for unit in units for reply in unit.replies]

    async def _send_units(self, node: Node | None, units: list[Unit], repeat: bool) -> None:
        node = node or self.topology.any_node()
        raw = b"".join(unit.raw for unit in units)
        lost: Exception | None = None
        connection = node.wire.connection
        if connection is not None and not connection.congested:
            try:
                replies = await connection.send_block(raw, sum(unit.length for unit in units))
                for unit in units:
                    unit.replies, replies = replies[: unit.length], replies[unit.length :]
            except AnswerLost as error:
                lost = error
            except NotSent:
                pass
        if lost is not None and not repeat:
            raise lost
        # Units that were not sent, or that a node redirected, follow one by one in their order.
        for unit in units:
            redirect = redirect_in(unit.replies)
            if unit.replies and redirect is None:
                continue
            slot = unit.slot if unit.slot is not None else 0
            unit.replies = list(await self._follow(unit.raw, unit.length, slot, repeat, redirect))

    async def call_block_alone(self, commands: Sequence[tuple[Any, ...]]) -> list[Reply]:
        units = units_of(commands, self._first_key)
        slots = {unit.slot for unit in units if unit.slot is not None}
        nodes = {self.topology.owners[slot] for slot in slots}
        if len(nodes) > 1:
            raise Invalid("a pipeline with WAIT or a blocking command must keep to one node: use keys of one tag")
        node = nodes.pop() if nodes else self.topology.any_node()
        if node is None:
            raise ServerAway("no node serves the slot of these keys")
        async with node.dedicated.borrow() as connection:
            replies = await connection.send_block(b"".join(unit.raw for unit in units), sum(u.length for u in units))
        moved = redirect_in(replies)
        if moved is not None:
            self.topology.refresh_soon()
            raise moved
        return replies


class NodeValkey(Valkey):
    """One node of a cluster, by itself: for walks that must visit every node. Closing it closes nothing shared."""

    def __init__(self, node: Node, cluster: ClusterValkey) -> None:
        super().__init__(node.find, pool=node.pool, settings=cluster.settings, layout=cluster.layout)
        self._wires = [node.wire]
        self._wire = node.wire
        self._dedicated = node.dedicated

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        return None


async def _ask(connection: Connection, raw: bytes, replies: int | None) -> Any:
    """A slot on its way: ASKING opens the door of the importing node for the next command, or the next MULTI block."""
    asking = pack(("ASKING",))
    if replies is None:
        outcome = (await connection.send_block(asking + raw, 2))[1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
    block: list[Reply] = (await connection.send_block(asking + raw, replies + 1))[1:]
    refused = redirect_in(block)
    if refused is not None:
        raise refused
    return block


def redirect_in(replies: list[Reply]) -> Exception | None:
    """The first reply that says: not here, or not now. The block it belongs to was not run."""
    for reply in replies:
        if isinstance(reply, REDIRECTS):
            return reply
    return None
