"""Erases what was found of a person, and writes a receipt without their data."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import redis.exceptions

from keystead.custody.finding import Finder, Holding, Progress, Search
from keystead.custody.pairs import Pairs
from keystead.custody.person import Person
from keystead.custody.reading import Part, ask
from keystead.custody.streams import rebuild
from keystead.engine import ErrorReply, Valkey
from keystead.errors import Unavailable
from keystead.inventory import Inventory

_AGAIN = 5
_AT_ONCE = 200
_CHANGED = "nothing: it was changed meanwhile"
_SEVERAL = {"field": "fields", "member": "members", "element": "elements", "entry": "entries", "consumer": "consumers",
            "group": "groups"}


@dataclass(frozen=True, slots=True)
class Act:
    """What was, or would be, done with one key."""

    pattern: str
    key: bytes
    type: str
    did: str  # deleted the key, removed parts, failed: …
    parts: int
    bytes: int
    sha256: str  # of what was taken out

    @property
    def failed(self) -> bool:
        return self.did.startswith("failed")

    @property
    def kept(self) -> bool:
        """Whether the key was left as it is, because it failed or was not theirs any more."""
        return self.failed or self.did == _CHANGED


@dataclass(frozen=True, slots=True)
class Erasure:
    """The outcome. ``leftovers`` are keys that still hold an identifier and were not ours to change, or came since."""

    person: Person
    server: str
    at: datetime
    really: bool
    acts: tuple[Act, ...]
    leftovers: tuple[Holding, ...]
    searched_keys: int
    unreadable: dict[str, int]
    notes: tuple[str, ...]
    partial: str = ""  # why it is not finished; empty if it is

    @property
    def clean(self) -> bool:
        return not (self.partial or self.leftovers or self.unreadable or any(act.failed for act in self.acts))

    def receipt(self) -> dict[str, Any]:
        """For the files: what was removed where, with hashes in place of names and values."""
        return {
            "receipt": "erasure", "person_sha256": self.person.sha256, "server": self.server,
            "at": self.at.isoformat(timespec="seconds"), "dry_run": not self.really,
            "searched_keys": self.searched_keys,
            "acts": [{
                "pattern": act.pattern, "key_sha256": _sha256(act.key), "type": act.type, "did": act.did,
                "parts": act.parts, "bytes": act.bytes, "removed_sha256": act.sha256,
            } for act in self.acts],
            "leftovers": [{
                "pattern": holding.pattern, "key_sha256": _sha256(holding.key), "type": holding.type,
                "parts": len(holding.parts), "unsure_parts": len(holding.unsure),
                "in_the_name": holding.whole and not holding.parts,
            } for holding in self.leftovers],
            "unreadable": self.unreadable, "notes": list(self.notes), "partial": self.partial,
        }


async def erase(
    valkey: Valkey, inventory: Inventory, person: Person, *, really: bool = False, everywhere: bool = False,
    server: str = "", keys_per_second: float | None = 20_000, progress: Progress | None = None,
) -> Erasure:
    """Remove a person from every key that the inventory says may hold them; then look whether anything is left.

    Nothing is changed unless ``really``. A key whose name bears the identifier goes whole; of the others only the
    fields, members, elements and entries that hold it. With ``everywhere`` keys that are not marked personal, or not in
    the inventory at all, are treated likewise; without it they are leftovers, for somebody to judge. If the server
    goes away, or stays slow, the outcome says what was done until then.
    """
    work = Erasing(valkey, inventory, person, really=really, everywhere=everywhere, server=server)
    return await work.run(keys_per_second=keys_per_second, progress=progress)


class Erasing:
    """One erasure that can be asked at any time what it has done: also after it was cancelled in the middle."""

    def __init__(
        self, valkey: Valkey, inventory: Inventory, person: Person, *, really: bool = False, everywhere: bool = False,
        server: str = "",
    ) -> None:
        self._valkey, self._person, self._really, self._server = valkey, person, really, server
        self._finder = Finder(valkey, inventory, person, everywhere=everywhere)
        self._pairs = Pairs(inventory)
        self._acts: list[Act] = []
        self._first = self._after = Search()

    async def run(self, *, keys_per_second: float | None = 20_000, progress: Progress | None = None) -> Erasure:
        """Search, erase if told, search again. Once."""
        really = self._really
        self._first = self._after = await self._finder.search(
            all_values=not really, keys_per_second=keys_per_second, progress=progress
        )
        partial = self._first.partial
        try:
            if not (really and partial):
                for holding in self._first.holdings:
                    if holding.ours:
                        await self._erase(holding)
            if really and not partial:
                self._after = await self._finder.search(
                    all_values=True, keys_per_second=keys_per_second, progress=progress
                )
                partial = self._after.partial
        except Unavailable as error:
            partial = f"the server went away after {len(self._acts)} acts; run it again: {error}"
        self._first.notes += await _other_databases(self._valkey)
        return self.so_far(partial)

    def so_far(self, partial: str) -> Erasure:
        """The outcome as it stands; ``partial`` says why it is not finished, if it is not."""
        first, after, really = self._first, self._after, self._really
        leftovers = [holding for holding in after.holdings
                     if (really and after is not first) or not holding.ours or holding.unsure]
        return Erasure(self._person, self._server, datetime.now(UTC), really, tuple(self._acts), tuple(leftovers),
                       after.keys, after.unreadable, _notes(first, after, really), partial)

    async def _erase(self, holding: Holding) -> None:
        act = await _act(self._valkey, self._finder, holding, self._person, self._really)
        self._acts.append(act)
        if holding.whole and not act.kept:
            for index, type in await self._pairs.leave_no_member(self._valkey, holding, really=self._really):
                self._acts.append(_in_index(self._pairs.pattern(index), index, type, self._really))


async def _other_databases(valkey: Valkey) -> list[str]:
    """A note if the server holds keys beside those of the database that was searched."""
    searched = f"db{valkey.address.db}" if valkey.address is not None else "db0"
    try:
        told = (await ask(valkey, "INFO", "keyspace")).decode(errors="replace")
    except (ErrorReply, Unavailable):  # a user who may not ask, or a server that is gone: told already
        return []
    others = [name for name, colon, _ in (line.partition(":") for line in told.splitlines())
              if colon and re.fullmatch(r"db\d+", name) and name != searched]
    return [f"only {searched} was searched, and {', '.join(others)} holds keys too"] if others else []


def _notes(first: Search, after: Search, really: bool) -> tuple[str, ...]:
    notes = dict.fromkeys(first.notes + after.notes)
    if really:
        notes["files and backups are not touched: the append-only file forgets at its next rewrite (BGREWRITEAOF), the "
              "slow log with SLOWLOG RESET"] = None
    return tuple(notes)


async def _act(valkey: Valkey, finder: Finder, holding: Holding, person: Person, really: bool) -> Act:
    did = ""
    try:
        if really:
            if holding.type == "stream" and holding.parts:
                did = await _write_anew(valkey, holding, person)
            else:
                now = await _take_out(valkey, finder, holding)
                holding, did = (now, "") if now is not None else (replace(holding, parts=[]), _CHANGED)
    except (ErrorReply, redis.exceptions.RedisError) as error:
        did = f"failed: {error}"
    parts = holding.parts
    if not did and holding.whole:
        did = "deleted the key"
    elif not did:
        did = f"removed {len(parts)} {parts[0].where if len(parts) == 1 else _SEVERAL[parts[0].where]}"
    size = sum(len(raw) for part in parts for raw in part.raw)
    return Act(holding.pattern, holding.key, holding.type, did if really else f"would have {did}", len(parts), size,
               _digest(parts) if parts else "")


def _in_index(pattern: str, index: bytes, type: str, really: bool) -> Act:
    did = "removed 1 member that stood for a deleted key"
    return Act(pattern, index, type, did if really else f"would have {did}", 1, 0, "")


async def _write_anew(valkey: Valkey, holding: Holding, person: Person) -> str:
    """Take entries out of a stream; says so if their bytes are still there."""
    ids = {part.handle for part in holding.parts if part.where == "entry"}
    anew = await rebuild(valkey, holding.key, ids, person.names, tries=_AGAIN)
    return "" if anew else f"marked {len(ids)} entries as deleted; in so long a stream their bytes stay for a while"


async def _take_out(valkey: Valkey, finder: Finder, holding: Holding) -> Holding | None:
    """Remove what was found. Gives what there was to remove, and None if others have changed it meanwhile."""
    if not holding.parts:
        await _delete(valkey, holding.key)
    elif holding.type in ("set", "zset", "list"):
        await _remove(valkey, holding)
    else:
        return await _take_out_by_value(valkey, finder, holding.key)
    return holding


async def _take_out_by_value(valkey: Valkey, finder: Finder, key: bytes) -> Holding | None:
    """A string or a field may be somebody else's by now, since its name does not tell: looked at again, and watched."""
    for _ in range(_AGAIN):
        async with valkey.pipeline(transaction=True) as pipe:
            await pipe.watch(key)
            now = await finder.look(key)
            if now is None or not now.parts:
                return None
            pipe.multi()  # type: ignore[no-untyped-call]
            if now.whole:
                pipe.unlink(key)
            else:
                handles = list(dict.fromkeys(part.handle for part in now.parts))
                for begin in range(0, len(handles), _AT_ONCE):
                    pipe.hdel(key, *handles[begin : begin + _AT_ONCE])
            try:
                await pipe.execute()
                return now
            except redis.exceptions.WatchError:
                continue
    raise redis.exceptions.WatchError("others keep writing it; run it again")


async def _delete(valkey: Valkey, key: bytes) -> None:
    try:
        await valkey.run(("UNLINK", key), int, repeat=True)
    except ErrorReply:
        await valkey.run(("DEL", key), int, repeat=True)


async def _remove(valkey: Valkey, holding: Holding) -> None:
    """Members and elements are what they hold: the same bytes again are the same person again."""
    key, handles = holding.key, list(dict.fromkeys(part.handle for part in holding.parts))
    if holding.type == "list":
        for element in handles:
            await valkey.run(("LREM", key, 0, element), int, repeat=True)
        return
    verb = {"set": "SREM", "zset": "ZREM"}[holding.type]
    for begin in range(0, len(handles), _AT_ONCE):
        await valkey.run((verb, key, *handles[begin : begin + _AT_ONCE]), int, repeat=True)


def _digest(parts: Sequence[Part]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        for raw in part.raw:
            digest.update(b"%d:" % len(raw) + raw)
    return digest.hexdigest()


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def as_json(erasure: Erasure) -> str:
    """The receipt as text."""
    return json.dumps(erasure.receipt(), indent=2) + "\n"
