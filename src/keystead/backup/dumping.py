"""The other way out of a server that gives no snapshot: key by key. It is not one moment.

A file is a row of records: length of the name (4 bytes), name, unix milliseconds when it expires or -1 (8 bytes),
length of the value (4 bytes), value as DUMP gives it. Numbers are big-endian.
"""

import struct
from collections.abc import AsyncIterator, Callable, Iterator
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
    """The records of such a file."""
    with path.open("rb") as file:
        while head := file.read(4):
            (length,) = struct.unpack(">I", head)
            name = file.read(length)
            expires_at, size = struct.unpack(">qI", file.read(12))
            yield name, expires_at, file.read(size)


async def put(valkey: Valkey, records: list[Record], *, replace: bool) -> None:
    """Write keys as they were. One that is there already is a refusal, unless told to ``replace`` it."""
    if not records:
        return
    more = ("ABSTTL", "REPLACE") if replace else ("ABSTTL",)
    try:
        async with valkey.pipeline(transaction=False) as pipeline:
            for name, expires_at, raw in records:
                pipeline.run(("RESTORE", name, max(0, expires_at), raw, *more), bool)
            await pipeline.execute()
    except ErrorReply as error:
        text = str(error)
        if "BUSYKEY" in text:
            raise Invalid("the server got keys of the same names while the backup was restored; stop who writes "
                          "there") from error
        if "payload version" in text:
            raise Invalid("the server is older than the one that the backup was taken from and cannot read its values; "
                          "restore to a server of the same version or a newer one") from error
        raise Unavailable(f"the server does not take the keys of the backup: {text[:200]}") from error


def _bytes(reply: bytes | None) -> bytes | None:
    return reply
