"""The other way out of a server that gives no snapshot: key by key. It is not one moment.

A file is a row of records: length of the name (4 bytes), name, unix milliseconds when it expires or -1 (8 bytes),
length of the value (4 bytes), value as DUMP gives it. Numbers are big-endian.
"""

import struct
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from keystead.engine import ErrorReply, Valkey, scan
from keystead.errors import Invalid, Unavailable

PART_BYTES: Final = 8 * 1024 * 1024
BATCH_KEYS: Final = 200

Record = tuple[bytes, int, bytes]


async def dump(valkey: Valkey, progress: Callable[[int, int], None] | None = None) -> AsyncIterator[list[Record]]:
    """Every key with its expiry and value, in batches. What comes or goes meanwhile may be missing."""
    async for names in scan(valkey, batch_keys=BATCH_KEYS, progress=progress):
        found: list[Record] = []
        async with valkey.pipeline(transaction=False) as pipeline:
            asked = [(name, pipeline.run(("PEXPIRETIME", name), int), pipeline.run(("DUMP", name), _bytes))
                     for name in names]
            await pipeline.execute()
        for name, expires_at, value in asked:
            if (raw := await value) is not None:
                found.append((name, await expires_at, raw))
        yield found


async def dump_files(valkey: Valkey, progress: Callable[[int, int], None]) -> AsyncIterator[tuple[bytes, int]]:
    """The same as contents of files of some megabytes, each with the number of its keys."""
    waiting, count = bytearray(), 0
    async for records in dump(valkey, progress):
        for name, expires_at, raw in records:
            waiting += struct.pack(">I", len(name)) + name + struct.pack(">qI", expires_at, len(raw)) + raw
            count += 1
            if len(waiting) >= PART_BYTES:
                yield bytes(waiting), count
                waiting, count = bytearray(), 0
    yield bytes(waiting), count


def records_in(path: Path) -> Iterator[Record]:
    """The records of such a file. ``Invalid`` where it ends within one."""
    left = path.stat().st_size
    with path.open("rb") as file:

        def read(count: int) -> bytes:
            nonlocal left
            if count > left:
                raise Invalid(f"the data of Valkey in this backup are damaged: {path.name} ends within a key")
            left -= count
            return file.read(count)

        while left:
            (length,) = struct.unpack(">I", read(4))
            name = read(length)
            expires_at, size = struct.unpack(">qI", read(12))
            yield name, expires_at, read(size)


async def put_files(valkey: Valkey, paths: Iterable[Path], *, forever: bool = False) -> int:
    """Write the keys of such files; says how many records they held.

    ``forever``: without their expiries, so that also what has expired by now must be readable.
    """
    count = 0
    for path in paths:
        records = records_in(path)
        while some := list(islice(records, BATCH_KEYS)):
            kept = [(name, -1, raw) for name, _, raw in some] if forever else some
            await put(valkey, kept)
            count += len(some)
    return count


async def put(valkey: Valkey, records: list[Record]) -> None:
    """Write keys as they were. One that was found twice comes twice, so each replaces the one before."""
    if not records:
        return
    try:
        async with valkey.pipeline(transaction=False) as pipeline:
            for name, expires_at, raw in records:
                pipeline.run(("RESTORE", name, max(0, expires_at), raw, "ABSTTL", "REPLACE"), bool)
            await pipeline.execute()
    except ErrorReply as error:
        text = str(error)
        if "payload version" in text:
            raise Invalid("the server cannot read values of the backup: it is older than the one that the backup was "
                          "taken from, or they are damaged; restore to one of the same version or newer") from error
        raise Unavailable(f"the server does not take the keys of the backup: {text[:200]}") from error


def _bytes(reply: bytes | None) -> bytes | None:
    return reply
