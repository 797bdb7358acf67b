"""Pipelines on a cluster: which commands must stay together, and where WATCH happens."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import redis.exceptions

from keystead.engine.cluster_follow import Unit
from keystead.engine.commands import pack
from keystead.engine.connection import Reply
from keystead.engine.failures import ServerAway
from keystead.engine.pipeline import Pipeline
from keystead.engine.scripts import Script
from keystead.engine.topology import NODE_PATIENCE_SECONDS, Node
from keystead.engine.wire import FIRST_PAUSE_SECONDS
from keystead.errors import Invalid
from keystead.keys.slots import key_slot

if TYPE_CHECKING:
    from keystead.engine.cluster import ClusterValkey

FirstKey = Callable[[tuple[Any, ...]], bytes | None]


def units_of(commands: Sequence[tuple[Any, ...]], first_key: FirstKey) -> list[Unit]:
    """Group commands into units; refuses a MULTI block whose keys lie in different slots."""
    units: list[Unit] = []
    block: list[tuple[Any, ...]] | None = None
    for command in commands:
        if command[0] == "MULTI":
            block = [command]
        elif block is None:
            key = first_key(command)
            units.append(Unit(key_slot(key) if key is not None else None, pack(command), 1))
        else:
            block.append(command)
            if command[0] == "EXEC":
                units.append(_block_unit(block, first_key))
                block = None
    return units


def _block_unit(block: list[tuple[Any, ...]], first_key: FirstKey) -> Unit:
    keys = [key for command in block[1:-1] if (key := first_key(command)) is not None]
    slots = {key_slot(key) for key in keys}
    if len(slots) > 1:
        shown = ", ".join(key.decode(errors="backslashreplace") for key in keys[:5])
        raise Invalid(f"a transaction on a cluster must keep to one slot; these keys do not share a tag: {shown}")
    return Unit(slots.pop() if slots else None, b"".join(pack(command) for command in block), len(block))


class ClusterPipeline(Pipeline):
    """A pipeline whose WATCH goes to the node of the watched keys."""

    _valkey: "ClusterValkey"
    _watched_slot: int | None = None

    async def watch(self, *names: Any) -> Any:  # type: ignore[override]
        raw = [name if isinstance(name, bytes) else str(name).encode() for name in names]
        slots = {key_slot(name) for name in raw} | ({self._watched_slot} if self.watching else set())
        if len(slots) > 1:
            raise Invalid("WATCH on a cluster takes keys of one slot: give them one tag")
        slot = self._watched_slot = slots.pop()
        if slot is None or self.watching:
            return await super().watch(*names)
        topology = self._valkey.topology
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._valkey.settings.outage_seconds
        while True:
            node = topology.owners[slot]
            try:
                if node is None:
                    raise ServerAway("no node serves the slot of the watched keys now")
                self.connection_pool = node.pool
                return await super().watch(*names)
            except redis.exceptions.MovedError as error:
                topology.moved(error, node)
            except ServerAway:
                topology.refresh_soon()
            # The connection goes back to the pool of its node before the next node is asked.
            await self.reset()
            if loop.time() >= deadline:
                raise ServerAway("no node served the slot of the watched keys in time")
            await asyncio.sleep(FIRST_PAUSE_SECONDS)

    @property
    def _patience_seconds(self) -> float:
        return NODE_PATIENCE_SECONDS

    def _with_texts(self, stack: Any) -> Any:
        """As on one server, with every node by itself: each gets the text with its first call."""
        sent: set[tuple[Node | None, str]] = set()
        stack = list(stack)
        for index, script in self._scripts_at.items():
            node = self._node_of(stack[index][0])
            if (node, script.sha) in sent or (node is not None and script.sha in node.loaded_scripts):
                continue
            sent.add((node, script.sha))
            stack[index] = ("EVAL", script.text, *stack[index][0][2:]), stack[index][1]
        return stack

    async def _run_missing(self, stack: Any, scripts: dict[int, Script], replies: list[Reply]) -> None:
        for index, script in scripts.items():
            node = self._node_of(stack[index][0])
            if node is not None:
                node.loaded_scripts.add(script.sha)
        await super()._run_missing(stack, scripts, replies)

    def _node_of(self, command: tuple[Any, ...]) -> Node | None:
        key = self._valkey.first_key(command)
        return self._valkey.topology.owners[key_slot(key)] if key is not None else None

    async def _execute_watched(self, stack: Any) -> list[Reply]:
        block = [("MULTI",), *(args for args, _ in stack), ("EXEC",)]
        try:
            [unit] = units_of(block, self._valkey.first_key)
            if unit.slot not in (None, self._watched_slot):
                raise Invalid("a transaction on a cluster must keep to the slot of its watched keys: give them one tag")
            return await super()._execute_watched(stack)
        except redis.exceptions.MovedError:
            self._valkey.topology.refresh_soon()
            raise redis.exceptions.WatchError("the watched keys moved to another node") from None
