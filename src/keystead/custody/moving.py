"""Carries keys from one server to another, or from one layout of names to another; can be taken up again."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import redis.exceptions

from keystead.custody.reading import Unreadable, ask, digest
from keystead.engine import ErrorReply, Valkey
from keystead.errors import Conflict, Invalid
from keystead.survey import Sparing

_SCAN_KEYS: Final = 200
_AT_ONCE: Final = 25
_FOOTER_BYTES: Final = 10  # of a dump: the version of its format, and a checksum
_MOST_EXAMPLES: Final = 20
LARGEST_BYTES: Final = 64 * 1024 * 1024

Rename = Callable[[bytes], bytes | None]


@dataclass(slots=True)
class MoveReport:
    """What became of the keys so far. ``clean`` if every key that was to go has arrived."""

    seen: int = 0
    moved: int = 0
    already_there: int = 0
    left_out: int = 0  # names that the move does not concern
    gone: int = 0  # expired or deleted meanwhile
    in_the_way: int = 0  # the target has something else under that name
    too_large: int = 0
    failed: int = 0
    deleted: int = 0  # at the source
    changed_since: int = 0  # at the source, after it was copied: not deleted
    finished: bool = False
    checked: int = 0
    missing: int = 0
    different: int = 0  # another type, or an expiry on one side only
    examples: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return self.finished and not (self.in_the_way or self.too_large or self.failed or self.missing or self.different
                                      or self.changed_since)

    def example(self, raw_key: bytes, why: str) -> None:
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(f"{raw_key[:200].decode(errors='backslashreplace')}: {why}")


class Move:
    """One move. ``rename`` gives the new name of a key, or None for one that stays where it is.

    Nothing is written unless ``really``. What is in the way at the target is never replaced unless ``overwrite``. The
    source keeps everything unless ``delete_source``; then a key goes only if it still is what was copied. ``state`` is
    a file in which the move notes how far it is; with the same file it goes on from there, unless what it does
    with keys is not the same: ``names`` says in words what ``rename`` does.
    """

    def __init__(
        self, source: Valkey, target: Valkey, rename: Rename, *, really: bool = False, overwrite: bool = False,
        delete_source: bool = False, state: Path | None = None, match: bytes | None = None,
        names: str = "", largest_bytes: int = LARGEST_BYTES, keys_per_second: float | None = 5000,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._rename = rename
        self._really = really
        self._overwrite = overwrite
        self._delete_source = delete_source
        self._state_file = state
        self._match = match
        self._names = names
        self._largest_bytes = largest_bytes
        self._keys_per_second = keys_per_second
        self._progress = progress
        self.report = MoveReport()
        self._cursors: dict[str, str] = {}

    async def run(self) -> MoveReport:
        """Copy every key, then see that all of them arrived.

        Refuses two ways to one and the same server: each key would be in its own way, and with ``delete_source`` the
        only copy would go. ``Unavailable`` if a server goes away, or stays slow while others use it.
        """
        if self._source is not self._target and await _same_server(self._source, self._target):
            raise Invalid("source and target are the same server and database; name another target, or none with "
                          "--to-layout")
        self._take_up()
        total = await self._total()
        nodes = await self._source.nodes()
        targets = () if self._target is self._source else await self._target.nodes()
        sparing = Sparing([*nodes, *targets])
        await sparing.hold_back()  # how quick they are before we begin
        for node in nodes:
            await self._node(node, total, sparing)
        self.report.finished = True
        if self._really:
            await self._verify()
        self._note()
        return self.report

    async def _node(self, node: Valkey, total: int, sparing: Sparing) -> None:
        # A cursor means something to the very process that gave it, and to no other.
        identity = await _identity(node)
        cursor = self._cursors.get(identity, "0").encode() if identity else b"0"
        if cursor == b"done":
            return
        async for following, keys in self._pages(node, cursor):
            for begin in range(0, len(keys), _AT_ONCE):
                await asyncio.gather(*(self._key(key) for key in keys[begin : begin + _AT_ONCE]))
            if identity:
                self._cursors[identity] = "done" if following == b"0" else following.decode()
            self._note()
            if self._progress is not None:
                self._progress(min(self.report.seen, total), total)
            await sparing.hold_back()

    async def _pages(self, node: Valkey, cursor: bytes) -> AsyncIterator[tuple[bytes, list[bytes]]]:
        """The names on a node from a cursor on, no faster than told; with each page the cursor of the next."""
        loop = asyncio.get_running_loop()
        began, asked = loop.time(), 0
        options: tuple[Any, ...] = () if self._match is None else ("MATCH", self._match)
        while True:
            cursor, keys = await ask(node, "SCAN", cursor, "COUNT", _SCAN_KEYS, *options)
            yield cursor, keys
            if cursor == b"0":
                return
            asked += _SCAN_KEYS
            if self._keys_per_second is not None:
                await asyncio.sleep(max(0.0, began + asked / self._keys_per_second - loop.time()))

    async def _key(self, key: bytes) -> None:
        report = self.report
        report.seen += 1
        name = self._rename(key)
        if name is None or (name == key and self._source is self._target):
            report.left_out += 1
            return
        try:
            await self._copy(key, name)
        except (ErrorReply, redis.exceptions.RedisError) as error:
            report.failed += 1
            report.example(key, str(error))

    async def _copy(self, key: bytes, name: bytes) -> None:
        report = self.report
        size = await _size(self._source, key)
        if size > self._largest_bytes:
            report.too_large += 1
            report.example(key, f"{size:,} bytes: carrying it would hold up the server")
            return
        payload, ttl_ms = await asyncio.gather(ask(self._source, "DUMP", key), ask(self._source, "PTTL", key))
        if payload is None or ttl_ms == -2:
            report.gone += 1
            return
        if not self._really:
            await self._would(key, name, payload)
            return
        replace = ("REPLACE",) if self._overwrite else ()
        try:
            await self._target.run(("RESTORE", name, life_ms(ttl_ms), payload, *replace), str)
            report.moved += 1
        except ErrorReply as error:
            if "BUSYKEY" not in str(error):
                raise
            if not await self._is_there(key, name, payload, await ask(self._target, "DUMP", name)):
                report.in_the_way += 1
                report.example(key, "the target holds something else under that name")
                return
            report.already_there += 1
        if self._delete_source:
            await self._delete(key, payload)

    async def _would(self, key: bytes, name: bytes, payload: bytes) -> None:
        there = await ask(self._target, "DUMP", name)
        if there is None or self._overwrite:
            self.report.moved += 1
        elif await self._is_there(key, name, payload, there):
            self.report.already_there += 1
        else:
            self.report.in_the_way += 1
            self.report.example(key, "the target holds something else under that name")

    async def _is_there(self, key: bytes, name: bytes, payload: bytes, there: bytes | None) -> bool:
        """Whether the target holds the same. Servers of different age write the same value differently."""
        if there is None or there[:-_FOOTER_BYTES] == payload[:-_FOOTER_BYTES]:
            return there is not None
        try:
            return await digest(self._source, key) == await digest(self._target, name)
        except Unreadable:
            return False

    async def _delete(self, key: bytes, payload: bytes) -> None:
        """Only what was carried over; a key that was written since stays, and is told."""
        async with self._source.pipeline(transaction=True) as pipe:
            await pipe.watch(key)
            if await pipe.dump(key) == payload:
                pipe.multi()  # type: ignore[no-untyped-call]
                pipe.delete(key)
                try:
                    await pipe.execute()
                    self.report.deleted += 1
                    return
                except redis.exceptions.WatchError:
                    pass
        self.report.changed_since += 1
        self.report.example(key, "was written after it was copied; run the move again with --overwrite")

    async def _verify(self) -> None:
        """Every key of the source that was to go is at the target, with its type, and expires if it did."""
        for node in await self._source.nodes():
            async for _, keys in self._pages(node, b"0"):
                for begin in range(0, len(keys), _AT_ONCE):
                    await asyncio.gather(*(self._check(key) for key in keys[begin : begin + _AT_ONCE]))

    async def _check(self, key: bytes) -> None:
        name = self._rename(key)
        if name is None or (name == key and self._source is self._target):
            return
        here, there = await asyncio.gather(facts(self._source, key), facts(self._target, name))
        if here[0] == b"none":
            return
        self.report.checked += 1
        if there[0] == b"none":
            if (await facts(self._source, key))[0] != b"none":  # it may have ended on both sides meanwhile
                self.report.missing += 1
                self.report.example(key, "is not at the target")
        elif here != there:
            self.report.different += 1
            self.report.example(key, "has another type or expiry at the target")

    async def _total(self) -> int:
        return sum([await node.run(("DBSIZE",), int, repeat=True) for node in await self._source.nodes()])

    def _take_up(self) -> None:
        if self._state_file is None or not self._state_file.exists():
            return
        try:
            kept = json.loads(self._state_file.read_text(encoding="utf-8"))
            options, self._cursors, counts = kept["options"], dict(kept["cursors"]), kept["report"]
            self.report = MoveReport(**counts)
            if not all(isinstance(cursor, str) and (cursor.isdigit() or cursor == "done")
                       for cursor in self._cursors.values()) or not all(
                       isinstance(value, type(default)) for value, default in zip(
                           asdict(self.report).values(), asdict(MoveReport()).values(), strict=True)):
                raise ValueError("it is damaged")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Invalid(f"{self._state_file} is not the state of a move ({error}); name another file") from None
        if self.report.finished and isinstance(options, dict):  # nothing is half done: another run may do more
            options = options | {"delete_source": self._delete_source}
        if options != self._options():
            raise Conflict(f"{self._state_file} belongs to another move; name another file, or remove it")
        if self.report.finished:  # once more from the beginning
            self.report, self._cursors = MoveReport(), {}

    def _note(self) -> None:
        if self._state_file is None or not self._really:
            return
        text = json.dumps({"options": self._options(), "cursors": self._cursors, "report": asdict(self.report)})
        beside = self._state_file.with_name(self._state_file.name + ".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self._state_file)

    def _options(self) -> dict[str, Any]:
        match = None if self._match is None else self._match.decode(errors="backslashreplace")
        addresses = [getattr(getattr(each, "address", None), "display", "") for each in (self._source, self._target)]
        return {"source": addresses[0], "target": addresses[1], "match": match,
                "names": self._names, "delete_source": self._delete_source}


def life_ms(ttl_ms: int) -> int:
    """What to tell RESTORE, to which zero means for ever: not so a key that has less than a millisecond left."""
    return 0 if ttl_ms == -1 else max(ttl_ms, 1)


async def facts(valkey: Valkey, key: bytes) -> tuple[bytes, bool]:
    """Type of a key, and whether it has an expiry."""
    type, ttl_ms = await asyncio.gather(ask(valkey, "TYPE", key), ask(valkey, "PTTL", key))
    return (type, ttl_ms >= 0) if ttl_ms != -2 else (b"none", False)  # it ended between the two questions


async def _size(valkey: Valkey, key: bytes) -> int:
    try:
        return int(await ask(valkey, "MEMORY", "USAGE", key) or 0)
    except ErrorReply:  # a user who may not ask, or a server that does not know it
        return 0


async def _same_server(first: Valkey, second: Valkey) -> bool:
    """Whether both lead to one process and database, by whatever address."""
    one, other = (getattr(each.address, "db", 0) for each in (first, second))
    if one != other:
        return False
    ones, others = [{await _identity(node) for node in await each.nodes()} for each in (first, second)]
    if "" in ones | others:  # a server that does not say who it is
        return first.address is not None and second.address is not None and (
            first.address.hosts, first.address.path) == (second.address.hosts, second.address.path)
    return bool(ones & others)


async def _identity(node: Valkey) -> str:
    """What no other process has, and not this one once it was restarted; empty if the server does not say."""
    told = (await ask(node, "INFO", "server")).decode(errors="replace")
    return next((line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("run_id:")), "")
