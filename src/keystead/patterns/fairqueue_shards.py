"""Which shards a fair queue knows, page by page, and what each of them holds."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.engine.client import Valkey
from keystead.keys import Executor
from keystead.patterns.fairqueue_keys import QueueKeys
from keystead.patterns.fairqueue_values import Counts

_RING, _SLEEP, _LISTED, _END = 0, 1, 2, 3
_PER_SHARD: Final = 5
_MOST_STEPS: Final = 20


@dataclass(frozen=True, slots=True)
class ShardPage:
    """Some shards, and where to go on; no ``position`` means that was all."""

    shards: tuple[str, ...]
    position: tuple[int, int, str] | None = None


class Shards:
    """The shards of one queue: those with something to serve, those that sleep, those that are blacklisted."""

    def __init__(self, keys: QueueKeys) -> None:
        self._keys = keys

    async def page(self, valkey: Valkey, position: tuple[int, int, str] | None = None, most: int = 100) -> ShardPage:
        """Up to ``most`` shards, in no order that means anything.

        Whoever stays where they are from the first page to the last is there exactly once; whoever wakes or falls
        asleep meanwhile may come twice. The server spends O(most) on a page, whatever the queue holds.
        """
        place, cursor, after = position or (_RING, 0, "")
        found: list[str] = []
        for _ in range(_MOST_STEPS):
            if place >= _END or len(found) >= most:
                break
            following, names = await self._scan(valkey, place, cursor, most)
            fresh = sorted(name for name in await self._unseen(valkey, place, names) if name > after)
            room = most - len(found)
            if len(fresh) > room:
                # A small collection comes whole, however few were asked for.
                return ShardPage((*found, *fresh[:room]), (place, cursor, fresh[room - 1]))
            found += fresh
            place, cursor, after = (place, following, "") if following else (place + 1, 0, "")
        return ShardPage(tuple(found), None if place >= _END else (place, cursor, after))

    def counts(self, on: Executor, shards: Sequence[str]) -> Awaitable[list[Counts]]:
        """How many items of each shard are where; one round trip. Events are not counted by shard."""
        names = self._keys.names(on.layout)
        commands: list[tuple[Any, ...]] = []
        for shard in shards:
            raw = shard.encode()
            commands += [("ZCARD", place % raw) for place in (names.ready, names.delayed, names.leased, names.dead)]
            commands.append(("HGET", names.items % raw, "!parked"))

        def read(replies: list[Any]) -> list[Counts]:
            return [
                Counts(ready=ready, delayed=delayed, leased=leased, dead=dead, parked=int(parked or 0))
                for ready, delayed, leased, dead, parked in zip(*(replies[at::_PER_SHARD] for at in range(_PER_SHARD)),
                                                                strict=True)
            ]

        return on.run_block(commands, read, repeat=True)

    async def _scan(self, valkey: Valkey, place: int, cursor: int, most: int) -> tuple[int, set[str]]:
        names = self._keys.names(valkey.layout)
        command = "HSCAN" if place == _RING else "ZSCAN"
        key = {_RING: names.base[1], _SLEEP: names.base[2], _LISTED: names.listed}[place]
        reply: Any = await valkey.run((command, key, cursor, "COUNT", most), tuple, repeat=True)
        return int(reply[0]), {raw.decode().removeprefix("~") for raw in reply[1][::2]} - {"!turn"}

    async def _unseen(self, valkey: Valkey, place: int, shards: set[str]) -> list[str]:
        """Those that no earlier place has told of."""
        ordered, names = sorted(shards), self._keys.names(valkey.layout)
        if place == _RING or not ordered:
            return ordered
        marked = [each for shard in ordered for each in (shard, f"~{shard}")]
        seen = await valkey.run(("HMGET", names.base[1], *marked), list, repeat=True)
        if place == _LISTED:
            asleep = await valkey.run(("ZMSCORE", names.base[2], *marked), list, repeat=True)
            seen = [mine if mine is not None else other for mine, other in zip(seen, asleep, strict=True)]
        return [shard for at, shard in enumerate(ordered) if seen[2 * at] is None and seen[2 * at + 1] is None]
