"""Finds links whose message was neither delivered nor given up in time, and stores or forgets them."""

from collections.abc import Callable
from typing import Final

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.jobs import StopReason, SweepJob, SweepRun
from keystead.keys import Reply
from keystead.messaging.links.keys import BUFFER, CODE, LEAK_LOCK, LEAKED
from keystead.messaging.links.models import DEFAULTS
from keystead.messaging.links.moving import Moving, read_moving
from keystead.messaging.links.rows import LinkStored, store_links
from keystead.messaging.links.script_names import ScriptNames
from keystead.messaging.links.stats import LEAK_RUN, LINKS_COUNTED
from keystead.patterns import Writes
from keystead.patterns.guarded import judged
from keystead.settings import LinksSettings
from keystead.store import Database
from keystead.telemetry import logger

LEAK: Final = Script("keystead.messaging.links", "scripts/leak.lua")
LEAK_END: Final = Script("keystead.messaging.links", "scripts/leak_end.lua")
PAGE: Final = 100
_log = logger("links")


class Leaks(SweepJob):
    """One link at a time is put aside, so that its clicks do not change, stored if its message has a row, and then
    taken out of the buffer. It resolves all the while, and a sweep that dies leaves it to the next."""

    lock, runs = LEAK_LOCK, LEAK_RUN
    every_seconds = 900.0

    def __init__(
        self, valkey: Valkey, clock: Clock, database: Database, *, settings: LinksSettings = DEFAULTS,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._database, self._settings = database, settings
        self._names = ScriptNames(valkey)

    async def sweep(self, run: SweepRun) -> StopReason:
        limit = run.started_at - self._settings.leak_seconds
        left_aside = True
        while True:
            found = await LEAKED.at().range(self.valkey, 0, PAGE - 1) if left_aside else []
            left_aside = bool(found)
            found = found or await BUFFER.at().range_by_score(self.valkey, most=limit, limit=PAGE)
            dealt_with = 0
            for code, _ in found:
                reason = run.reason_to_stop()
                if reason is not None:
                    return reason
                dealt_with += await self._deal_with(code, limit, run)
            if not dealt_with:  # those that are left are being stored
                return StopReason.LIST_EXHAUSTED

    async def _deal_with(self, code: str, limit: float, run: SweepRun) -> bool:
        if not CODE.accepts(code):
            return False
        aside: Reply = await LEAK(
            self.valkey, keys=self._names.keys, args=(self._names.packed(run.started_at), "", code, limit)
        )
        if aside != 1:
            return bool(aside == -1)
        (moving,) = await read_moving(self.valkey, [code])
        outcome = await self._store(moving)
        made_at = moving.link.created_at if moving.link is not None else run.started_at
        writes = moving.forget(self.valkey.layout)
        LINKS_COUNTED.tally().incr("leaked", outcome, at=made_at).store(writes)
        if await self._end(code, writes):
            run.count("leaked")
            if outcome != "duplicate":
                run.count(outcome)
            _log.error("a link leaked: its message was neither delivered nor given up in time", outcome=outcome)
        return True

    async def _store(self, moving: Moving) -> str:
        if moving.link is None:
            return "abandoned"
        async with self._database.transaction() as sql:
            stored = await store_links(self._database, sql, [(moving.link, moving.clicks)], self.clock.now())
        return {LinkStored.STORED: "recovered", LinkStored.NO_TOUCH: "abandoned"}.get(
            stored[moving.code].link, "duplicate"
        )

    async def _end(self, code: str, writes: Writes) -> bool:
        names, packed = writes.packed(self.valkey.layout)
        reply: Reply = await LEAK_END(self.valkey, keys=[LEAKED.at(), *names], args=(code, packed))
        return bool(judged(writes, reply))
