"""Walking every key of a live server without its other clients noticing."""

import asyncio
from collections.abc import AsyncIterator, Callable

from keystead.engine.client import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, Unavailable
from keystead.keys.executor import Argument, Reply

_LARGEST_COUNT = 1000  # keys the server looks at in one go; about a tenth of a millisecond


async def scan(
    valkey: Valkey,
    *,
    match: str | bytes | None = None,
    type: str | None = None,
    batch_keys: int = 500,
    keys_per_second: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AsyncIterator[list[bytes]]:
    """Every key, in batches of at most ``batch_keys``; on a cluster one primary after the other.

    ``match`` is a glob, ``type`` what TYPE answers. ``keys_per_second`` caps how many keys the server looks at,
    those that do not match included. ``progress`` is told keys walked and keys in all, at first and after every
    answer; both are estimates while others write.

    A key that is there from beginning to end comes at least once, perhaps twice; one that comes or goes meanwhile
    may be missing. If a server restarts during the walk, or its replica takes over, that promise cannot be kept:
    the walk ends with ``Unavailable`` and should be started again. Slots that move between nodes break it unseen.
    """
    if batch_keys < 1 or (keys_per_second is not None and keys_per_second <= 0):
        raise Invalid("a scan needs batch_keys and keys_per_second above zero")
    loop = asyncio.get_running_loop()
    nodes = await valkey.nodes()
    sizes = [await node.run(("DBSIZE",), int, repeat=True) for node in nodes]
    total = sum(sizes)
    if progress is not None:
        progress(0, total)
    count = min(batch_keys, _LARGEST_COUNT)
    options = _options(match, type, count)
    walked, asked, started = 0, 0, loop.time()
    batch: list[bytes] = []
    for node, size in zip(nodes, sizes, strict=True):
        identity = await run_of(node)
        cursor, of_node = b"0", 0
        while True:
            cursor, keys = await node.run(("SCAN", cursor, *options), _page, repeat=True)
            of_node = min(of_node + max(count, len(keys)), size)
            if progress is not None:
                progress(walked + of_node, total)
            batch += keys
            while len(batch) >= batch_keys:
                yield batch[:batch_keys]
                batch = batch[batch_keys:]
            if cursor == b"0":
                break
            asked += count
            if keys_per_second is not None:
                await asyncio.sleep(max(0.0, started + asked / keys_per_second - loop.time()))
        walked += size
        if await run_of(node) != identity:
            raise Unavailable("a server restarted or was replaced while its keys were walked; walk again")
    if batch:
        yield batch
    if progress is not None:
        progress(total, total)


def _options(match: str | bytes | None, type: str | None, count: int) -> tuple[Argument, ...]:
    options: tuple[Argument, ...] = ("COUNT", count)
    if match is not None:
        options += ("MATCH", match)
    if type is not None:
        options += ("TYPE", type)
    return options


def _page(reply: Reply) -> tuple[bytes, list[bytes]]:
    return bytes(reply[0]), list(reply[1])


async def run_of(node: Valkey) -> bytes:
    """Which run of which server answers; a cursor means nothing to another one. Empty if it does not say."""
    try:
        facts = await node.call(("INFO", "server"), repeat=True)
    except ErrorReply:  # a user who may only read keys; the check is then left out
        return b""
    lines = facts.splitlines() if isinstance(facts, bytes) else []
    return next((line for line in lines if line.startswith(b"run_id:")), b"")
