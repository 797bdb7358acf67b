"""Takes entries out of a stream so that their bytes are gone: the stream is written anew in one step.

XDEL only marks an entry; its bytes stay in memory, dumps and replicas until the whole block around it is deleted.
"""

from typing import Any, Final

import redis.exceptions

from keystead.custody.person import Person
from keystead.custody.reading import ask, pairs
from keystead.engine import Valkey

MOST_ENTRIES: Final = 20_000
_PENDING: Final = 1000


async def rebuild(valkey: Valkey, key: bytes, ids: set[bytes], person: Person | None, *, tries: int) -> bool:
    """Write the stream anew without these entries, and without groups and consumers that are named after the person.

    Ids, the last id, groups, what they have read and what is pending stay. One transaction; repeated if somebody wrote
    meanwhile. A stream with very many entries is only marked (XDEL), because writing it anew would block the server;
    the answer is then false.
    """
    if int(await valkey.run(("XLEN", key), int, repeat=True)) > MOST_ENTRIES:
        for begin in range(0, len(ids), 200):
            await valkey.run(("XDEL", key, *sorted(ids)[begin : begin + 200]), int, repeat=True)
        return False
    for attempt in range(tries):
        async with valkey.pipeline(transaction=True) as pipe:
            await pipe.watch(key)
            commands = await _anew(valkey, key, ids, person)
            pipe.multi()  # type: ignore[no-untyped-call]
            for command in commands:
                pipe.execute_command(*command, **({"parse_justid": True} if command[0] == "XCLAIM" else {}))
            try:
                await pipe.execute()
                return True
            except redis.exceptions.WatchError:
                if attempt == tries - 1:
                    raise
    return False


async def _anew(valkey: Valkey, key: bytes, ids: set[bytes], person: Person | None) -> list[tuple[Any, ...]]:
    """The commands that make the stream again. It is watched, so what is read here is what is replaced."""
    entries = await ask(valkey, "XRANGE", key, "-", "+")
    about = _named(await ask(valkey, "XINFO", "STREAM", key))
    ttl_ms = await ask(valkey, "PTTL", key)
    kept = [(entry, fields) for entry, fields in entries if entry not in ids]
    last = about["last-generated-id"]
    commands: list[tuple[Any, ...]] = [("DEL", key)]
    for entry, fields in kept:
        commands.append(("XADD", key, entry, *fields))
    if not kept:  # made, and emptied again: so it stays with its groups and its last id
        commands += [("XADD", key, "0-1", "x", "x"), ("XTRIM", key, "MAXLEN", 0)]
    setting: tuple[Any, ...] = ("XSETID", key, last)
    if "entries-added" in about:
        setting += ("ENTRIESADDED", about["entries-added"], "MAXDELETEDID", max(
            [about["max-deleted-entry-id"], *ids], key=_order))
    commands.append(setting)
    for group in map(_named, await ask(valkey, "XINFO", "GROUPS", key)):
        commands += await _group(valkey, key, group, ids, person)
    if ttl_ms > 0:
        commands.append(("PEXPIRE", key, ttl_ms))
    return commands


async def _group(
    valkey: Valkey, key: bytes, group: dict[str, Any], ids: set[bytes], person: Person | None
) -> list[tuple[Any, ...]]:
    name = group["name"]
    if _is_named(name, person):
        return []
    commands: list[tuple[Any, ...]] = [("XGROUP", "CREATE", key, name, group["last-delivered-id"])]
    if group.get("entries-read") is not None:
        commands[0] += ("ENTRIESREAD", group["entries-read"])
    for consumer in map(_named, await ask(valkey, "XINFO", "CONSUMERS", key, name)):
        if not _is_named(consumer["name"], person):
            commands.append(("XGROUP", "CREATECONSUMER", key, name, consumer["name"]))
    begin = "-"
    while True:
        page = await ask(valkey, "XPENDING", key, name, begin, "+", _PENDING)
        for entry, consumer, idle_ms, times in page:
            if entry not in ids and not _is_named(consumer, person):
                commands.append(("XCLAIM", key, name, consumer, 0, entry, "IDLE", idle_ms, "RETRYCOUNT", times, "FORCE",
                                 "JUSTID"))
        if len(page) < _PENDING:
            return commands
        begin = "(" + page[-1][0].decode()


def _is_named(name: bytes, person: Person | None) -> bool:
    return person is not None and person.is_in(name)


def _named(reply: Any) -> dict[str, Any]:
    return {name.decode(): value for name, value in pairs(reply).items()}


def _order(entry: bytes) -> tuple[int, int]:
    time, _, number = entry.partition(b"-")
    return int(time), int(number or 0)
