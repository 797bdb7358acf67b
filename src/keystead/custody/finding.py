"""Finds what a server holds of one person: whole keys that bear their identifier, and parts of others."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from keystead.custody.certainty import PERSONAL_KINDS, PERSONAL_VARIABLES, Certainty
from keystead.custody.person import Person
from keystead.custody.reading import CHUNK_BYTES, Part, Unreadable, ask, parts
from keystead.engine import ErrorReply, Valkey, scan
from keystead.errors import Unavailable
from keystead.inventory import Entry, Inventory, Matcher
from keystead.survey import Sparing

EVERY_MEMBER_HAS: Final = "every member has"  # how an inventory says that an index has records
_AT_ONCE: Final = 100
MOST_PARTS: Final = 100_000  # of one key; a key with more is named as not fully read

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Holding:
    """What one key holds of the person. ``whole``: the key itself is theirs; otherwise ``parts`` of it are.

    ``ours``: the inventory says that the key may hold personal data, so erasing may act on it. ``unsure`` are parts
    that only look like the person (a score, a count, a longer name); erasing leaves them for somebody to judge.
    """

    key: bytes
    type: str
    entry: Entry | None
    whole: bool
    ours: bool
    parts: list[Part] = field(default_factory=list)
    unsure: list[Part] = field(default_factory=list)

    @property
    def pattern(self) -> str:
        return self.entry.pattern if self.entry is not None else "(not in the inventory)"


@dataclass(slots=True)
class Search:
    """What was found, and what could not be read."""

    holdings: list[Holding] = field(default_factory=list)
    keys: int = 0
    unreadable: dict[str, int] = field(default_factory=dict)  # by type of a module, or reason
    notes: list[str] = field(default_factory=list)
    partial: str = ""  # why not everything was searched; empty if it was


class Finder:
    """Walks a server and looks for a person. Reads only."""

    def __init__(self, valkey: Valkey, inventory: Inventory, person: Person, *, everywhere: bool = False) -> None:
        self._valkey = valkey
        self._matcher = Matcher(inventory)
        self._person = person
        self._everywhere = everywhere
        self._records = {record for entry in inventory.entries for record in [dict(entry.extra).get(EVERY_MEMBER_HAS)]}

    async def search(self, *, all_values: bool, keys_per_second: float | None = 20_000,
                     progress: Progress | None = None) -> Search:
        """Every key, gently. With ``all_values`` the values of keys that are not marked personal are read too.

        If the server goes away, or stays slow, what was found until then is given, and ``partial`` says so.
        """
        found = Search()
        try:
            sparing = Sparing(await self._valkey.nodes())
            await sparing.hold_back()  # how quick the server is before we begin
            async for batch in scan(self._valkey, batch_keys=_AT_ONCE, keys_per_second=keys_per_second,
                                    progress=progress):
                looked = await asyncio.gather(*(self._look(key, all_values, found) for key in batch))
                found.keys += len(batch)
                found.holdings += [holding for holding in looked if holding is not None]
                await sparing.hold_back()
        except Unavailable as error:
            found.partial = f"the search ended early, after {found.keys:,} keys: {error}"
        # A walk may give a key twice.
        found.holdings = list({holding.key: holding for holding in found.holdings}.values())
        return found

    async def look(self, key: bytes) -> Holding | None:
        """What one key holds of the person now."""
        return await self._look(key, True, Search())

    async def _look(self, key: bytes, all_values: bool, search: Search) -> Holding | None:
        found = self._matcher.find(key)
        entry = found.entry if found is not None else None
        ours = self._everywhere or (entry is not None and speaks_of_people(entry))
        certainty = Certainty(self._person, entry, found.arguments if found is not None else {})
        try:
            type = (await ask(self._valkey, "TYPE", key)).decode()
            if type == "none":
                return None
            if certainty.names_them(key, ours):
                return Holding(key, type, entry, True, ours)
            read = ours or all_values
            taken, unsure, more = await self._parts_in(key, type, certainty) if read else ([], [], False)
        except Unreadable as error:
            search.unreadable[str(error)] = search.unreadable.get(str(error), 0) + 1
            return None
        except ErrorReply as error:
            reason = str(error).partition(" ")[0]
            search.unreadable[reason] = search.unreadable.get(reason, 0) + 1
            return None
        if more:
            search.notes.append(f"a key of {entry.pattern if entry else 'no entry'} holds them more than "
                                f"{MOST_PARTS:,} times; run it again afterwards")
        if taken:
            whole = type in ("string", "ReJSON-RL") or (type == "hash" and self._is_record(entry, taken, certainty))
            return Holding(key, type, entry, whole, ours, taken, unsure)
        in_the_name = self._person.may_be_in(key)
        return Holding(key, type, entry, in_the_name, False, [], unsure) if unsure or in_the_name else None

    def _is_record(self, entry: Entry | None, taken: list[Part], certainty: Certainty) -> bool:
        """Whether a hash is about the person as a whole: a field such as ``user_id`` says so, or the inventory does."""
        if entry is None or "{" not in entry.pattern or certainty.of_somebody_else:
            return False
        return entry.pattern in self._records or any(
            len(part.raw) == 2 and self._person.is_value(part.raw[1].decode(errors="replace"))
            and part.handle.decode(errors="replace") in certainty.fields | PERSONAL_VARIABLES for part in taken)

    async def _parts_in(self, key: bytes, type: str, certainty: Certainty) -> tuple[list[Part], list[Part], bool]:
        taken: list[Part] = []
        unsure: list[Part] = []
        overlap = min(self._person.longest_bytes, CHUNK_BYTES)
        async for part in parts(self._valkey, key, type, overlap_bytes=overlap):
            if any(self._person.may_be_in(raw) for raw in part.raw):
                if len(taken) + len(unsure) >= MOST_PARTS:
                    return taken, unsure, True
                (taken if certainty.is_sure(part, type) else unsure).append(part)
        return taken, unsure, False


def speaks_of_people(entry: Entry) -> bool:
    """Whether an entry is marked as personal, or a variable of its pattern names a person."""
    if entry.kind == "opaque":
        return False
    if entry.personal is not None and entry.personal.value:
        return True
    kinds = dict(entry.variables)
    return any(f"{{{name}}}" in entry.pattern for name in PERSONAL_VARIABLES) or any(
        kind in PERSONAL_KINDS for kind in kinds.values())
