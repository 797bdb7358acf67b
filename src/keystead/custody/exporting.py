"""Everything a server holds of a person, as one JSON document."""

import base64
from typing import Any

from keystead.custody.finding import Finder, Holding, Progress
from keystead.custody.person import Person, unpack
from keystead.custody.reading import Unreadable, ask, parts
from keystead.engine import ErrorReply, Valkey
from keystead.errors import Unavailable
from keystead.inventory import Inventory

_MOST_BYTES = 16 * 1024 * 1024  # of one key; what is cut is marked


async def export(
    valkey: Valkey, inventory: Inventory, person: Person, *, everywhere: bool = False, server: str = "",
    keys_per_second: float | None = 20_000, progress: Progress | None = None,
) -> dict[str, Any]:
    """Whole values where the key is the person's, and of other keys the parts that hold them. Reads only."""
    finder = Finder(valkey, inventory, person, everywhere=everywhere)
    found = await finder.search(all_values=everywhere, keys_per_second=keys_per_second, progress=progress)
    held: list[dict[str, Any]] = []
    try:
        for holding in found.holdings:
            if holding.ours:
                held.append(await _exported(valkey, holding))
    except Unavailable as error:
        found.partial = f"the server went away after {len(held)} keys were read: {error}"
    others = sum(not holding.ours or bool(holding.unsure) for holding in found.holdings)
    if others:
        found.notes.append(f"{others} keys may hold more of them, and are not marked personal or not surely theirs: "
                           "keystead keys erase, without --really, names them")
    return {"person": list(person.ids), "server": server, "searched_keys": found.keys, "unreadable": found.unreadable,
            "notes": found.notes, "partial": found.partial, "keys": held}


async def _exported(valkey: Valkey, holding: Holding) -> dict[str, Any]:
    entry = holding.entry
    ttl_ms = await ask(valkey, "PTTL", holding.key)
    told: dict[str, Any] = {
        "key": _text(holding.key), "pattern": holding.pattern, "type": holding.type,
        "purpose": entry.purpose.value if entry is not None and entry.purpose is not None else "",
        "expires_in_seconds": ttl_ms / 1000 if ttl_ms >= 0 else None, "whole": holding.whole,
    }
    collected: list[tuple[bytes, ...]] = []
    size = 0
    try:
        if holding.whole:
            async for part in parts(valkey, holding.key, holding.type):
                size += sum(map(len, part.raw))
                if size > _MOST_BYTES:
                    told["cut_after_bytes"] = _MOST_BYTES
                    break
                collected.append((part.handle, *part.raw) if part.where == "entry" else part.raw)
        else:
            collected = [(part.handle, *part.raw) if part.where == "entry" else part.raw for part in holding.parts]
    except (Unreadable, ErrorReply):  # of a module, or gone or of another type since it was found
        told["unreadable"] = True
    told["value"] = _value(holding.type, collected)
    return told


def _value(type: str, parts: list[tuple[bytes, ...]]) -> Any:
    if type in ("string", "ReJSON-RL"):
        return _text(b"".join(part[0] for part in parts))
    if type in ("hash", "zset"):
        return {_text(part[0]): _text(part[1]) for part in parts}
    if type == "stream":
        return [{"id": _text(part[0]), "fields": {_text(name): _text(value) for name, value in
                                                  zip(part[1::2], part[2::2], strict=False)}} for part in parts]
    return [_text(part[0]) for part in parts]


def _text(raw: bytes) -> str:
    """Text as it is, packed text unpacked, anything else as base64 that says so."""
    for each in (raw, unpack(raw)):
        try:
            if each is not None:
                return each.decode()
        except UnicodeDecodeError:
            continue
    return "base64:" + base64.b64encode(raw).decode()
