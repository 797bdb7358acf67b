"""A cluster as one client: each command goes to the node that serves its slot, and follows when the slot moves."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import redis.exceptions
from redis.client import EMPTY_RESPONSE

from keystead.engine.client import Valkey
from keystead.engine.cluster_follow import REDIRECTS, Follower, Unit, is_redirect
from keystead.engine.cluster_hub import ClusterHub
from keystead.engine.cluster_pipeline import ClusterPipeline, units_of
from keystead.engine.commands import OWN_PIPELINE, Plan, blocks, full_name, longest_wait_seconds, pack, plan
from keystead.engine.connect_pool import redis_pool
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import AnswerLost, LoginRefused, NotSent, ServerAway, ServerTooOld
from keystead.engine.lanes import LaneHub
from keystead.engine.scripts import Script
from keystead.engine.sentinel import following_pool
from keystead.engine.topology import NODE_PATIENCE_SECONDS, Node, Topology
from keystead.errors import Invalid
from keystead.keys.executor import Argument, Reply
from keystead.keys.layout import Layout
from keystead.keys.slots import key_slot
from keystead.settings import ValkeySettings
from keystead.telemetry import counts

T = TypeVar("T")
FOLLOWED = (NotSent, AnswerLost, *REDIRECTS)

_ALL_PRIMARIES = frozenset(
    ("CONFIG RESETSTAT", "CONFIG REWRITE", "CONFIG SET", "DBSIZE", "FLUSHALL", "FLUSHDB", "FUNCTION DELETE",
     "FUNCTION FLUSH", "FUNCTION LOAD", "KEYS", "SCRIPT EXISTS", "SCRIPT FLUSH", "SCRIPT LOAD")
)  # fmt: skip
_SPLIT = frozenset(("DEL", "EXISTS", "MGET", "TOUCH", "UNLINK"))


class ClusterValkey(Valkey):
    """The same client over a cluster.

    One wire per node. MGET, DEL, UNLINK, EXISTS and TOUCH over several slots are split and put together again (not
    atomic); any other command must keep to one slot, MSET too, since splitting it would break its promise. Commands
    for the whole cluster (FLUSHALL, DBSIZE, SCRIPT LOAD…) go to every primary; others without a key to any node.
    """

    def __init__(self, seeds: list[Endpoint], *, settings: ValkeySettings, layout: Layout) -> None:
        self.topology = Topology(seeds, settings, redis_pool)
        self._follower = Follower(self.topology, settings)
        self._cluster_hub: ClusterHub | None = None

        async def find() -> Endpoint:
            return self.topology.any_node().endpoint

        super().__init__(find, pool=following_pool(find, seeds[0]), settings=settings, layout=layout)

    async def open(self) -> "ClusterValkey":
        """Learn the slot map and connect. A primary that is away now is no reason to fail while another answers."""
        await self.topology.refresh()
        opened = await asyncio.gather(*(n.wire.open() for n in self.topology.primaries), return_exceptions=True)
        for problem in opened:
            if isinstance(problem, LoginRefused | ServerTooOld):
                raise problem
            if problem is not None and not isinstance(problem, ServerAway):
                raise problem
        if all(opened):
            raise ServerAway(f"no primary of the cluster answered: {opened[0]}")
        return self

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        if self._whole is not None:
            return
        if self._cluster_hub is not None:
            await self._cluster_hub.aclose()
        await super().aclose()
        await self.topology.aclose()

    def hub(self) -> ClusterHub:  # type: ignore[override]
        if self._whole is not None:
            return LaneHub(self._whole.hub(), self._layout)  # type: ignore[return-value]
        if self._cluster_hub is None:
            self._cluster_hub = ClusterHub(self.topology, self.settings, layout=self.layout)
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
        key = self.first_key(args)
        if key is None:
            return await self._call_keyless(args, repeat)
        slot = key_slot(key)
        raw = pack(args)
        node = self.topology.owners[slot]
        connection = node.wire.connection if node is not None else None
        error: Exception | None = None
        try:
            if connection is not None and not connection.congested:
                return await connection.send(raw)
        except FOLLOWED as problem:
            error = problem
        except redis.exceptions.ClusterCrossSlotError as problem:
            raise _crossing(args) from problem
        return await self._follow_one(slot, raw, repeat, error, node)

    def first_key(self, args: tuple[Any, ...]) -> bytes | None:
        """The key that decides where a command goes."""
        if self.topology.places is None:
            raise ServerAway("the client is not open yet: await open()")
        return self.topology.places.first(args)

    async def _follow_one(
        self, slot: int | None, raw: bytes, repeat: bool, error: Exception | None = None, by: Node | None = None
    ) -> Reply:
        unit = Unit(slot, raw, 1)
        await self._follower.follow([unit], repeat=repeat, error=error, by=by)
        return _raised(unit.replies[0])

    async def _call_keyless(self, args: tuple[Any, ...], repeat: bool) -> Reply:
        name = full_name(args).upper()
        if name == "SCAN":
            raise Invalid("SCAN walks one node; use keystead.engine.scan, which walks them all")
        if name not in _ALL_PRIMARIES:
            return await self._follow_one(None, pack(args), repeat)
        replies = await self._call_everywhere(pack(args), repeat)
        if name == "DBSIZE":
            return sum(replies)
        if name == "KEYS":
            return [key for reply in replies for key in reply]
        if name == "SCRIPT EXISTS":
            return [int(all(row)) for row in zip(*replies, strict=True)]
        return replies[0]

    async def _call_everywhere(self, raw: bytes, repeat: bool) -> list[Reply]:
        """The replies of all primaries. One that is away is asked again, or whoever replaces it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.outage_seconds
        replies: dict[Node, Reply] = {}
        while True:
            self.topology.check_open()
            missing = [node for node in self.topology.primaries if node not in replies]
            outcomes = await asyncio.gather(*(_call_node(node, raw) for node in missing), return_exceptions=True)
            away: BaseException | None = None
            for node, outcome in zip(missing, outcomes, strict=True):
                if not isinstance(outcome, BaseException):
                    replies[node] = outcome
                elif isinstance(outcome, (ServerAway, NotSent, *REDIRECTS)) or (
                    repeat and isinstance(outcome, AnswerLost)
                ):
                    away = outcome
                else:
                    raise outcome
            if away is None and all(node in replies for node in self.topology.primaries):
                return [replies[node] for node in self.topology.primaries]
            self.topology.refresh_soon()
            if loop.time() >= deadline:
                raise ServerAway(f"not every primary of the cluster answered: {away}")
            await asyncio.sleep(NODE_PATIENCE_SECONDS)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in _SPLIT and len(args) > 2:
            return await self._split(args)
        how = self._plans.get(args[0]) or self._plan(args)
        try:
            places = self.topology.places
            key = places.first(args) if how.plain and places is not None else None
            if key is None:
                reply = await (self.call(args, repeat=how.repeat) if how.plain else self._special(args, how))
            else:
                # The same as ``call``, written out: one coroutine less is a good part of what a command costs.
                slot, raw = key_slot(key), pack(args)
                node = self.topology.owners[slot]
                connection = node.wire.connection if node is not None else None
                if connection is None or connection.congested:
                    reply = await self._follow_one(slot, raw, how.repeat)
                else:
                    try:
                        reply = await connection.send(raw)
                    except FOLLOWED as error:
                        reply = await self._follow_one(slot, raw, how.repeat, error, node)
        except redis.exceptions.ClusterCrossSlotError as problem:
            raise _crossing(args) from problem
        except redis.exceptions.ResponseError:
            if EMPTY_RESPONSE in options:
                return options[EMPTY_RESPONSE]
            raise
        return reply if how.callback is None else how.shape(reply, options)

    async def _run_script(self, script: Script, rest: tuple[Argument, ...], decode: Callable[[Reply], T]) -> T:
        repeat = script.header.repeat
        try:
            return decode(await self.call(("EVALSHA", script.sha, *rest), repeat=repeat))
        except redis.exceptions.NoScriptError:
            return decode(await self.call(("EVAL", script.text, *rest), repeat=repeat))

    async def _split(self, args: tuple[Any, ...]) -> Any:
        """A command over many keys as one command per slot; the nodes work at the same time."""
        self.first_key(args)
        assert self.topology.places is not None
        keys = self.topology.places.all(args)
        slots: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            slots.setdefault(key_slot(key), []).append(place)
        repeat = args[0] in ("MGET", "EXISTS")
        groups = list(slots.values())
        parts = await _all(
            self.call((args[0], *(keys[place] for place in group)), repeat=repeat) for group in groups
        )
        if args[0] != "MGET":
            return sum(parts)
        values: list[Any] = [None] * len(keys)
        for group, part in zip(groups, parts, strict=True):
            for place, value in zip(group, part, strict=True):
                values[place] = value
        return values

    async def _special(self, args: tuple[Any, ...], how: Plan) -> Reply:
        """Commands that wait go to the node of their key, on a connection of their own."""
        name = full_name(args).upper()
        how = plan(name, {})
        waits = name not in OWN_PIPELINE and (not how.shared or (how.may_block and blocks(args)))
        key = self.first_key(args) if waits and not how.stateful else None
        if key is None:
            return await super()._special(args, how)
        unit = Unit(key_slot(key), pack(args), 1)
        await self._follower.follow(
            [unit], repeat=how.repeat, alone=True, wait_seconds=longest_wait_seconds(args)
        )
        return _raised(unit.replies[0])

    # -- many commands ----------------------------------------------------------------------------------------------

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> ClusterPipeline:
        """Commands that leave together, split by node. A transaction must keep to one slot."""
        return ClusterPipeline(self, transaction)

    async def call_block(self, commands: Sequence[tuple[Any, ...]], *, repeat: bool = False) -> list[Reply]:
        """Split by node, sent at the same time, put back in order. What lies inside MULTI and EXEC stays together.

        Commands of one slot run in their order. Each node's part is a row of its own: when one part loses its answer
        the others still run, and then the error is raised.
        """
        units = units_of(commands, self.first_key)
        waiting = units
        while waiting:
            by_node: dict[Node | None, list[Unit]] = {}
            for unit in waiting:
                owner = self.topology.owners[unit.slot] if unit.slot is not None else None
                by_node.setdefault(owner, []).append(unit)
            await _all(self._send_units(node, group, repeat) for node, group in by_node.items())
            waiting = [unit for unit in waiting if not unit.replies]
            if waiting:
                # One goes ahead and finds the way; what it learned serves the others.
                head, *waiting = waiting
                await self._follower.follow([head], repeat=repeat)
        return [reply for unit in units for reply in unit.replies]

    async def _send_units(self, node: Node | None, units: list[Unit], repeat: bool) -> None:
        """One try. Units that were not run and may go elsewhere keep no replies."""
        raw = b"".join(unit.raw for unit in units)
        try:
            node = node or self.topology.any_node()
            until = asyncio.get_running_loop().time() + NODE_PATIENCE_SECONDS
            connection = await node.wire.ready(len(raw), until)
            replies = await connection.send_block(raw, sum(unit.length for unit in units))
        except AnswerLost:
            counts.add("wire_answers_lost")
            self.topology.refresh_soon()
            if not repeat:
                raise
            return
        except (NotSent, ServerAway):
            return
        for unit in units:
            unit.replies, replies = replies[: unit.length], replies[unit.length :]
            refusal = unit.refusal
            if isinstance(refusal, redis.exceptions.MovedError):
                self.topology.moved(refusal, node)
                unit.replies = []
            elif refusal is not None and not isinstance(refusal, redis.exceptions.AskError):
                unit.replies = []
        for unit in units:
            if unit.refusal is not None:
                # Its slot is on its way: each key may be here or there, so each unit asks for itself.
                await self._follower.follow([unit], repeat=repeat, error=unit.refusal, by=node)

    async def call_block_alone(self, commands: Sequence[tuple[Any, ...]], *, repeat: bool = False) -> list[Reply]:
        units = units_of(commands, self.first_key)
        owners = {self.topology.owners[unit.slot] for unit in units if unit.slot is not None}
        if len(owners) > 1:
            raise Invalid("a pipeline with WAIT or a blocking command must keep to one node: use keys of one tag")
        waits = [longest_wait_seconds(command) for command in commands]
        wait_seconds = None if None in waits else sum(filter(None, waits))
        await self._follower.follow(units, repeat=repeat, alone=True, wait_seconds=wait_seconds)
        # A part that waited while its node went out of service was not run, and the others were: nobody can follow.
        return [_out_of_service(reply) for unit in units for reply in unit.replies]


class NodeValkey(Valkey):
    """One node of a cluster, by itself: for walks that must visit every node. Closing it closes nothing shared."""

    def __init__(self, node: Node, cluster: ClusterValkey) -> None:
        super().__init__(node.find, pool=node.pool, settings=cluster.settings, layout=cluster.layout)
        self._wires = [node.wire]
        self._wire = node.wire
        self._dedicated = node.dedicated

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        if self._hub is not None:
            await self._hub.aclose()


async def _call_node(node: Node, raw: bytes) -> Reply:
    connection = await node.wire.ready(len(raw), asyncio.get_running_loop().time() + NODE_PATIENCE_SECONDS)
    return await connection.send(raw)


async def _all(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all, then raise the first error: nothing goes on behind the caller's back."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _out_of_service(reply: Reply) -> Reply:
    return ServerAway(f"the node went out of service meanwhile: {reply}") if is_redirect(reply) else reply


def _raised(reply: Reply) -> Reply:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _crossing(args: tuple[Any, ...]) -> redis.exceptions.ClusterCrossSlotError:
    return redis.exceptions.ClusterCrossSlotError(
        f"the keys of {full_name(args).upper()} lie in different slots of the cluster; give them one tag, as in"
        " {user:7}name, or send one command per key"
    )
