"""One moment for Valkey and SQL together.

Writes to Valkey are held on every primary. While nothing can change there, the database is told to fix what it
shows, and then every server to fork. So the pair is what both really held at one instant: what a power failure
would have left at that instant, which every room bears. In which order a room writes to the two makes no
difference. Only then writes go on, and only then data is read out.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from keystead.backup.sql import SqlMoment
from keystead.engine import Valkey
from keystead.engine.snapshot import Held, Moved, Snapshot, primaries, replication_offset, server_facts, wait_until_idle

TRIES: Final = 5
IDLE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Moment:
    """What was fixed: the servers' snapshots, ready to be read, how many keys they hold, and how long writes waited."""

    snapshots: list[Snapshot]
    keys: int
    held_seconds: float


async def fix(valkey: Valkey, sql: SqlMoment, stack: AsyncExitStack, hold_seconds: float) -> Moment:
    """Fix the moment; the snapshots stay open as long as ``stack``.

    ``valkey`` must be nobody else's client: a write that waits on its connection would keep the release waiting too.
    ``NotPermitted`` if the servers do not let us; ``Moved`` if there was no such moment however often it was tried.
    """
    for attempt in range(1, TRIES + 1):
        try:
            async with AsyncExitStack() as tried:
                found = await _try(valkey, sql, tried, hold_seconds)
                stack.push_async_exit(tried.pop_all())
                return found
        except Moved:
            if attempt == TRIES:
                raise
            await asyncio.sleep(0.5 * attempt)
    raise AssertionError("unreachable")


async def _try(valkey: Valkey, sql: SqlMoment, stack: AsyncExitStack, hold_seconds: float) -> Moment:
    nodes = await primaries(valkey)
    snapshots = [await stack.enter_async_context(Snapshot.open(node)) for node in nodes]
    for node in nodes:  # a server that saves already could not begin at once, and writes would wait for it
        await wait_until_idle(node, IDLE_SECONDS)
    async with Held(nodes, hold_seconds) as held:
        facts = await asyncio.gather(*map(replication_offset, nodes), *map(_keys, nodes))
        offsets, keys = facts[: len(nodes)], sum(facts[len(nodes) :])
        await sql.fix()
        await asyncio.gather(*(
            snapshot.begin(offset, hold_seconds) for snapshot, offset in zip(snapshots, offsets, strict=True)
        ))
        await asyncio.gather(*map(replication_offset, nodes))  # still the primaries
        if not held.still_holds:
            raise Moved(f"the servers needed more than the {hold_seconds:g} s that writes may be held; "
                        "let them be held longer with backup.hold_seconds")
    return Moment(snapshots, keys, held.held_seconds)


async def _keys(node: Valkey) -> int:
    """Keys in all databases of a server."""
    facts = await server_facts(node, "keyspace")
    return sum(int(value.split(",")[0].removeprefix("keys=")) for name, value in facts.items() if name.startswith("db"))
