"""What keeps a fair queue in order when nobody consumes, and what operators ask of it."""

from collections.abc import Awaitable, Sequence
from typing import Any, Final

from keystead.engine.client import Valkey
from keystead.engine.pipeline import Pipeline
from keystead.engine.scripts import Script, ScriptRunner
from keystead.keys import Executor
from keystead.patterns.fairqueue_keys import QueueKeys
from keystead.patterns.fairqueue_values import Counts, Restored, pairs

_LAPSE = Script("keystead.patterns", "scripts/fairqueue/lapse.lua")
_RIPEN = Script("keystead.patterns", "scripts/fairqueue/ripen.lua")
_PRUNE_DEAD = Script("keystead.patterns", "scripts/fairqueue/prune_dead.lua")
_RETRY_DEAD = Script("keystead.patterns", "scripts/fairqueue/retry_dead.lua")
_RECOUNT = Script("keystead.patterns", "scripts/fairqueue/recount.lua")
_MEND = Script("keystead.patterns", "scripts/fairqueue/mend_counts.lua")
_MOST: Final = 100  # about 3 ms of the server's time
_PAGE: Final = 500
_RING_PAGE: Final = 5000
_TRIES: Final = 5


class Upkeep:
    """Sweeps and inspection of one queue."""

    def __init__(self, keys: QueueKeys, max_attempts: int) -> None:
        self._keys = keys
        self._max_attempts = max_attempts

    def restore(self, on: ScriptRunner, *, now: float, most: int = _MOST) -> Awaitable[Restored]:
        """Bring back what is due: lapsed leases, delays that are over, parks past their deadline.

        A take does this by itself; run it every few seconds so that it also happens when nobody takes. On a
        connection it also forgets dead items that are too old or too many; on a pipeline the answer counts lapsed
        leases only.
        """
        if isinstance(on, Pipeline):
            lapsed = self._lapse(on, now, most)
            self._ripen(on, now, most)
            return lapsed
        return self._restore(on, now, most)

    async def _restore(self, on: ScriptRunner, now: float, most: int) -> Restored:
        lapsed = await self._lapse(on, now, most)
        ready, prune = await self._ripen(on, now, most)
        for shard in prune:
            await self.prune_dead(on, shard, now=now)
        return Restored(lapsed.items + ready, lapsed.dead)

    def _lapse(self, on: ScriptRunner, now: float, most: int) -> Awaitable[Restored]:
        names = self._keys.names(on.layout)
        return _LAPSE(
            on, keys=[*names.base, names.conf],
            args=[*names.at(now), names.alive, names.queue, names.number, names.dead, most, self._max_attempts],
            decode=lambda reply: Restored(reply[0], pairs(reply[1])),
        )

    def _ripen(self, on: ScriptRunner, now: float, most: int) -> Awaitable[tuple[int, list[str]]]:
        names = self._keys.names(on.layout)
        return _RIPEN(
            on, keys=[*names.base, names.parked, names.order],
            args=[*names.at(now), names.park, names.dead, most],
            decode=lambda reply: (reply[0], [each.decode() for each in reply[1]]),
        )

    def prune_dead(self, on: ScriptRunner, shard: str, *, now: float) -> Awaitable[list[str]]:
        """Forget the dead of a shard that are older than 6.5 days or more than 1,000, up to 200 of them."""
        names = self._keys.names(on.layout)
        return _PRUNE_DEAD(
            on, keys=[*names.base, names.dead % shard.encode()], args=[*names.at(now), names.index, shard],
            decode=lambda reply: [each.decode() for each in reply],
        )

    def dead(self, on: Executor, shard: str, most: int = 100) -> Awaitable[list[tuple[str, float]]]:
        """Items that were given up, with the unix time of it, oldest first."""
        key = self._keys.names(on.layout).dead % shard.encode()
        return on.run(
            ("ZRANGE", key, 0, most - 1, "WITHSCORES"),
            lambda reply: [(member.decode(), float(score) / 1000) for member, score in _scored(reply)], repeat=True,
        )

    def retry_dead(self, on: ScriptRunner, shard: str, ids: Sequence[str], *, now: float) -> Awaitable[int]:
        """Make dead items ready again, as if they had never been tried; gives how many were dead."""
        names = self._keys.names(on.layout)
        return _RETRY_DEAD(
            on, keys=[*names.base, names.dead % shard.encode()],
            args=[*names.at(now), shard, *ids], decode=int,
        )

    def deficits(self, on: Executor, cursor: int = 0, most: int = 100) -> Awaitable[tuple[int, dict[str, float]]]:
        """A page of (shard, credit) of the ring, as HSCAN gives it, and the cursor for more (0: that was all).

        A shard outside the ring that owes something is listed with its debt.
        """
        key = self._keys.names(on.layout).base[1]

        def read(reply: Any) -> tuple[int, dict[str, float]]:
            flat = reply[1]
            found = {field.decode(): value.decode() for field, value in zip(flat[::2], flat[1::2], strict=True)}
            return int(reply[0]), {
                name.removeprefix("~"): float(value.partition(" ")[0])
                for name, value in found.items() if name != "!turn"
            }

        return on.run(("HSCAN", key, cursor, "COUNT", most), read, repeat=True)

    async def recount(self, valkey: Valkey, *, fix: bool = True) -> Counts | None:
        """Count what the shards really hold, page by page, and set the counts right.

        None if the queue kept changing while it was counted: nothing was written then; try in a quieter moment.
        """
        for _ in range(_TRIES):
            found = [await self._recounted(valkey, [])]  # before the shards are listed: one may join meanwhile
            shards = await self._shards(valkey)
            for at in range(0, len(shards), _PAGE):
                found.append(await self._recounted(valkey, shards[at : at + _PAGE]))
            names = self._keys.names(valkey.layout)
            parked = await valkey.run(("ZCARD", names.parked), int, repeat=True)
            moves = {each[4] for each in [*found, await self._recounted(valkey, [])]}
            if len(moves) > 1:
                continue
            sums = [sum(each[at] for each in found) for at in range(4)]
            truth = {"ready": sums[0], "delayed": sums[1], "leased": sums[2], "dead": sums[3], "parked": parked}
            flat = [str(each) for pair in truth.items() for each in pair]
            if not fix or await _MEND(valkey, keys=[names.base[3]], args=[*moves, *flat]):
                return Counts(**truth)
        return None

    async def _recounted(self, valkey: Valkey, shards: list[str]) -> list[Any]:
        names = self._keys.names(valkey.layout)
        reply: list[Any] = await _RECOUNT(
            valkey, keys=[names.base[3]], args=[names.ready, names.delayed, names.leased, names.dead, *shards])
        return reply

    async def _shards(self, valkey: Valkey) -> list[str]:
        names = self._keys.names(valkey.layout)
        found: set[str] = set()
        at = 0
        while part := await valkey.run(("LRANGE", names.base[0], at, at + _RING_PAGE - 1), list, repeat=True):
            found |= {each.decode() for each in part}
            at += len(part)
        cursor = b"0"
        while True:
            cursor, page = await valkey.run(("ZSCAN", names.base[2], cursor, "COUNT", 1000), tuple, repeat=True)
            found |= {member.decode().removeprefix("~") for member in page[::2]}
            if cursor == b"0":
                return sorted(found)


def _scored(reply: Any) -> list[tuple[bytes, Any]]:
    if reply and isinstance(reply[0], list):
        return [(member, score) for member, score in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
