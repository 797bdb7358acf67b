"""A few live keys of one pattern, found without walking a large keyspace to its end."""

import asyncio
from dataclasses import dataclass

from keystead.engine import Valkey, scan
from keystead.keys import Declaration, Registry
from keystead.keys.globs import glob_of

LOOK_SECONDS = 1.0
BATCH_KEYS = 1000


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key that was there a moment ago; ``ttl_seconds`` is None for one that does not expire."""

    raw_key: bytes
    arguments: dict[str, str]
    ttl_seconds: float | None
    memory_bytes: int = 0


async def some_keys(
    valkey: Valkey, registry: Registry, declaration: Declaration, *, most: int
) -> tuple[list[LiveKey], bool]:
    """Up to ``most`` keys, and whether these are all. Looks for a second at most, in small steps."""
    found: dict[bytes, dict[str, str]] = {}
    complete = True
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            async for batch in scan(valkey, match=glob_of(declaration, valkey.layout), batch_keys=BATCH_KEYS):
                for raw_key in batch:
                    match = registry.resolve(raw_key)
                    if match is not None and match.declaration is declaration:
                        found[raw_key] = match.arguments
                if len(found) > most:
                    complete = False
                    break
    except TimeoutError:
        complete = False
    shown = list(found.items())[:most]
    return await _with_facts(valkey, shown), complete


async def _with_facts(valkey: Valkey, keys: list[tuple[bytes, dict[str, str]]]) -> list[LiveKey]:
    """Keys that went meanwhile are left out."""
    left_ms, sizes = await asyncio.gather(
        asyncio.gather(*(valkey.run(("PTTL", raw_key), int, repeat=True) for raw_key, _ in keys)),
        asyncio.gather(*(valkey.run(("MEMORY", "USAGE", raw_key), lambda size: size or 0, repeat=True)
                         for raw_key, _ in keys)),
    )
    return [
        LiveKey(raw_key, arguments, None if left == -1 else left / 1000, size)
        for (raw_key, arguments), left, size in zip(keys, left_ms, sizes, strict=True)
        if left != -2
    ]
