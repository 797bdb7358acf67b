"""Indexes whose members each have a record: where a record goes, its member goes with it."""

from keystead.custody.finding import EVERY_MEMBER_HAS, Holding
from keystead.custody.reading import ask
from keystead.engine import ErrorReply, Valkey
from keystead.inventory import Entry, Inventory, Matcher

_TAKES_OUT = {"zset": "ZREM", "set": "SREM", "hash": "HDEL"}
_LOOKS_FOR = {"zset": "ZSCORE", "set": "SISMEMBER", "hash": "HEXISTS"}


class Pairs:
    """Which index knows of which record, as far as the inventory says."""

    def __init__(self, inventory: Inventory) -> None:
        self._matcher = Matcher(inventory)
        self._indexes: dict[str, list[Entry]] = {}
        for entry in inventory.entries:
            record = dict(entry.extra).get(EVERY_MEMBER_HAS)
            if record:
                self._indexes.setdefault(record, []).append(entry)

    async def leave_no_member(self, valkey: Valkey, record: Holding, *, really: bool = True) -> list[tuple[bytes, str]]:
        """Take the member out of every index of a record that was deleted; gives those that have it, with their type.

        Nothing is changed unless ``really``.
        """
        had: list[tuple[bytes, str]] = []
        for index, type, member in self.members(record):
            try:
                if await ask(valkey, _LOOKS_FOR[type], index, member) in (None, 0):
                    continue
                if really:
                    await valkey.run((_TAKES_OUT[type], index, member), int, repeat=True)
                had.append((index, type))
            except ErrorReply:  # of another type, or not ours to write: an audit will tell
                continue
        return had

    def pattern(self, key: bytes) -> str:
        found = self._matcher.find(key)
        return found.entry.pattern if found is not None else "(not in the inventory)"

    def members(self, record: Holding) -> list[tuple[bytes, str, str]]:
        """Name and type of each index, and the member that stands for the record."""
        found = self._matcher.find(record.key)
        if found is None or found.entry.pattern not in self._indexes:
            return []
        tag = record.key[: record.key.index(b"}") + 1] if record.key[:1] == b"{" and b"}" in record.key else b""
        members: list[tuple[bytes, str, str]] = []
        for index in self._indexes[found.entry.pattern]:
            name = index.pattern
            own = dict(found.arguments)
            for variable, value in found.arguments.items():
                if f"{{{variable}}}" in name:
                    name = name.replace(f"{{{variable}}}", value)
                    del own[variable]
            # Only where one variable is left is it clear what a member is.
            if len(own) == 1 and "{" not in name and index.server_type in _TAKES_OUT:
                members.append((tag + name.encode(), index.server_type, next(iter(own.values()))))
        return members
