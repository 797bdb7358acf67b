"""Reads whole values in bounded steps: chunks of a string, pages of a collection. Never a command over everything."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from keystead.engine import ErrorReply, Valkey

CHUNK_BYTES: Final = 512 * 1024
PAGE_ITEMS: Final = 200
_MARGIN_ITEMS: Final = 50  # as many may be taken from a list between two of its pages


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a value that can be taken out by itself.

    ``handle`` names it to the server: the field, member, element or entry id; empty for a chunk of a string, which goes
    with its key. ``raw`` are its bytes, name included; ``at`` where a chunk begins.
    """

    where: str
    handle: bytes
    raw: tuple[bytes, ...]
    at: int = 0


class Unreadable(Exception):
    """A value of a type that we cannot read; the message names it."""


async def parts(valkey: Valkey, key: bytes, type: str, *, overlap_bytes: int = 0) -> AsyncIterator[Part]:
    """Everything in a value. Chunks of a string overlap, so that nothing hides on a border.

    What is there from beginning to end comes at least once. Raises ``Unreadable`` for types of modules.
    """
    if type == "string":
        reader = _string(valkey, key, overlap_bytes)
    elif type == "list":
        reader = _list(valkey, key)
    elif type in _SCANS:
        reader = _scanned(valkey, key, type)
    elif type == "stream":
        reader = _stream(valkey, key)
    elif type == "ReJSON-RL":
        reader = _json(valkey, key)
    elif type == "none":
        return
    else:
        raise Unreadable(type)
    async for part in reader:
        yield part


_SCANS: Final = {"hash": "HSCAN", "set": "SSCAN", "zset": "ZSCAN"}


async def ask(valkey: Valkey, *command: Any) -> Any:
    """One command that reads; it may be repeated."""
    return await valkey.run(command, _same, repeat=True)


def _same(reply: Any) -> Any:
    return reply


async def _string(valkey: Valkey, key: bytes, overlap: int) -> AsyncIterator[Part]:
    at = 0
    while True:
        raw = await ask(valkey, "GETRANGE", key, at, at + CHUNK_BYTES + overlap - 1)
        if raw:
            yield Part("value", b"", (raw,), at)
        if len(raw) < CHUNK_BYTES + overlap:
            return
        at += CHUNK_BYTES


async def _list(valkey: Valkey, key: bytes) -> AsyncIterator[Part]:
    # From the end: what others push at the left or take there does not move what is still to come. What they take at
    # the right does: then the margin of the last page is not where it was, and the page is given with its margin.
    end = -1
    margin: list[bytes] = []
    while True:
        page = await ask(valkey, "LRANGE", key, end - PAGE_ITEMS + 1, end + len(margin))
        stayed = bool(margin) and page[-len(margin) :] == margin
        for raw in reversed(page[: -len(margin)] if stayed else page):
            yield Part("element", raw, (raw,))
        if len(page) < PAGE_ITEMS + len(margin):
            return
        end -= PAGE_ITEMS
        margin = page[:_MARGIN_ITEMS]


async def _scanned(valkey: Valkey, key: bytes, type: str) -> AsyncIterator[Part]:
    cursor = b"0"
    while True:
        cursor, page = await ask(valkey, _SCANS[type], key, cursor, "COUNT", PAGE_ITEMS)
        if type == "set":
            for member in page:
                yield Part("member", member, (member,))
        else:
            where = "field" if type == "hash" else "member"
            for name, value in zip(page[::2], page[1::2], strict=True):
                yield Part(where, name, (name, value))
        if cursor == b"0":
            return


async def _stream(valkey: Valkey, key: bytes) -> AsyncIterator[Part]:
    begin = b"-"
    while True:
        page = await ask(valkey, "XRANGE", key, begin, "+", "COUNT", PAGE_ITEMS)
        for entry, fields in page:
            yield Part("entry", entry, tuple(fields or ()))
        if len(page) < PAGE_ITEMS:
            break
        begin = b"(" + page[-1][0]
    for group in await _groups(valkey, key):
        yield Part("group", group, (group,))
        for consumer in await ask(valkey, "XINFO", "CONSUMERS", key, group):
            told = pairs(consumer)
            yield Part("consumer", told[b"name"], (told[b"name"],))


async def _groups(valkey: Valkey, key: bytes) -> list[bytes]:
    return [pairs(group)[b"name"] for group in await ask(valkey, "XINFO", "GROUPS", key)]


async def _json(valkey: Valkey, key: bytes) -> AsyncIterator[Part]:
    try:
        raw = await ask(valkey, "JSON.GET", key)
    except ErrorReply as error:
        raise Unreadable("ReJSON-RL") from error
    if raw:
        yield Part("value", b"", (raw,))


async def digest(valkey: Valkey, key: bytes) -> tuple[str, int]:
    """Type and contents in short: the same for two keys that hold the same, however their servers keep it.

    Raises ``Unreadable`` for types of modules.
    """
    type = (await ask(valkey, "TYPE", key)).decode()
    ordered, total, number = type in ("list", "stream", "string"), 0, 0
    async for part in parts(valkey, key, type):
        text = b"".join(b"%d:%b" % (len(raw), raw) for raw in (part.where.encode(), part.handle, *part.raw))
        text = b"%d " % number + text if ordered else text
        total += int.from_bytes(hashlib.sha256(text).digest(), "big")
        number += 1
    return type, total


def pairs(reply: Any) -> dict[bytes, Any]:
    """A reply of names and values, as either protocol gives it."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
