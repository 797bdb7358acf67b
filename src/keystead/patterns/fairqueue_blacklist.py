"""The blacklist of a fair queue: shards that are not served for a while, each for one or more reasons."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

from keystead.engine.scripts import Script, ScriptRunner
from keystead.errors import Invalid
from keystead.keys import Executor, JsonCodec
from keystead.patterns.fairqueue_keys import LONGEST_BLACKLIST_SECONDS, SHARD, BlacklistReason, QueueKeys

_ADD = Script("keystead.patterns", "scripts/fairqueue/blacklist.lua")
_CLEAR = Script("keystead.patterns", "scripts/fairqueue/blacklist_clear.lua")
_PAGE = Script("keystead.patterns", "scripts/fairqueue/blacklist_page.lua")
_REASONS: JsonCodec[list[BlacklistReason]] = JsonCodec(list[BlacklistReason])


@dataclass(frozen=True, slots=True)
class Blacklisted:
    """Some of the blacklisted shards. ``cursor`` asks for more; 0 means that was all."""

    shards: tuple[tuple[str, tuple[BlacklistReason, ...]], ...]
    cursor: int


class Blacklist:
    """Nothing is leased for a shard while any reason stands. Its items wait, in order, and cost nothing meanwhile."""

    def __init__(self, keys: QueueKeys) -> None:
        self._keys = keys

    def add(self, on: ScriptRunner, reasons: Sequence[tuple[str, str, float]], *, now: float) -> Awaitable[int]:
        """Add (shard, value, seconds) reasons; a value that stands already gets the new end. Items already leased
        stay with their holders."""
        flat: list[str] = []
        for shard, value, seconds in reasons:
            if not SHARD.accepts(shard) or not value or not 0 < seconds <= LONGEST_BLACKLIST_SECONDS:
                raise Invalid(f"a shard is blacklisted for a reason, at most 90 days; got {shard!r}, {seconds!r} s")
            flat += (shard, value, str(max(1, round(seconds * 1000))))
        names = self._keys.names(on.layout)
        return _ADD(on, keys=[names.listed], args=[round(now * 1000), names.blacklist, *flat], decode=int)

    def clear(self, on: ScriptRunner, shard: str, value: str = "", *, now: float) -> Awaitable[int]:
        """Take one reason off a shard, or all; gives how many are left. Without any it is served again at once."""
        names = self._keys.names(on.layout)
        return _CLEAR(
            on, keys=[*names.base, names.listed, self._keys.blacklist.at(shard).name(on.layout)],
            args=[*names.at(now), shard, value], decode=int,
        )

    def of(self, on: Executor, shard: str, *, now: float) -> Awaitable[tuple[BlacklistReason, ...]]:
        """Why a shard is not served; empty if it is."""
        key = self._keys.blacklist.at(shard).name(on.layout)
        return on.run(("GET", key), lambda raw: _standing(raw, now), repeat=True)

    def page(self, on: ScriptRunner, cursor: int = 0, most: int = 100, *, now: float) -> Awaitable[Blacklisted]:
        """Blacklisted shards with their reasons, those that end first first."""
        names = self._keys.names(on.layout)

        def read(reply: Any) -> Blacklisted:
            flat = reply[1]
            shards = zip(flat[::2], flat[1::2], strict=True)
            return Blacklisted(tuple((shard.decode(), _standing(raw, now)) for shard, raw in shards), reply[0])

        return _PAGE(on, keys=[names.listed], args=[round(now * 1000), names.blacklist, cursor, most], decode=read)


def _standing(raw: bytes | None, now: float) -> tuple[BlacklistReason, ...]:
    reasons = _REASONS.decode(raw) if raw else []
    return tuple(sorted((each for each in reasons if each.until > now * 1000), key=lambda each: each.value))
