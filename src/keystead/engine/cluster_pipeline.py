"""Pipelines on a cluster: which commands must stay together, and where WATCH happens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keystead.engine.commands import pack
from keystead.engine.connection import Reply
from keystead.engine.pipeline import Pipeline
from keystead.errors import Invalid
from keystead.keys.slots import key_slot

if TYPE_CHECKING:
    from keystead.engine.cluster import ClusterValkey


@dataclass(slots=True)
class Unit:
    """Commands that travel together: one command, or all from MULTI to EXEC."""

    slot: int | None
    raw: bytes
    length: int
    replies: list[Reply] = field(default_factory=list)


def units_of(
    commands: Sequence[tuple[Any, ...]], first_key: Callable[[tuple[Any, ...]], bytes | None]
) -> list[Unit]:
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


def _block_unit(block: list[tuple[Any, ...]], first_key: Callable[[tuple[Any, ...]], bytes | None]) -> Unit:
    keys = [key for command in block[1:-1] if (key := first_key(command)) is not None]
    slots = {key_slot(key) for key in keys}
    if len(slots) > 1:
        shown = ", ".join(key.decode(errors="backslashreplace") for key in keys[:5])
        raise Invalid(f"a transaction on a cluster must keep to one slot; these keys do not share a tag: {shown}")
    return Unit(slots.pop() if slots else None, b"".join(pack(command) for command in block), len(block))


class ClusterPipeline(Pipeline):
    """A pipeline whose WATCH goes to the node of the watched keys."""

    _valkey: "ClusterValkey"

    async def watch(self, *names: Any) -> Any:  # type: ignore[override]
        raw = [name if isinstance(name, bytes) else str(name).encode() for name in names]
        slots = {key_slot(name) for name in raw}
        if len(slots) > 1:
            raise Invalid("WATCH on a cluster takes keys of one slot: give them one tag")
        node = self._valkey.topology.owners[slots.pop()]
        if node is not None:
            self.connection_pool = node.pool
        return await super().watch(*names)
