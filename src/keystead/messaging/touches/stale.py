"""Touches that nobody else ends: those without news, and those that are dead letters.

After a day and a half the channels have long given up, so something lost a callback.
"""

from collections.abc import Callable
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import StopReason, SweepJob, SweepRun
from keystead.messaging.touches.given_up import GivenUp
from keystead.messaging.touches.keys import PENDING, STALE_LOCK
from keystead.messaging.touches.pending import Ended, Pending
from keystead.messaging.touches.stats import DETECTION_RUN, STALE
from keystead.patterns import Writes
from keystead.telemetry import logger

STALE_SECONDS: Final = 36 * 3600
STEP: Final = 12

_log = logger("messaging.touches")


class StaleJob(SweepJob):
    """Ends touches without news, and touches that were given up, as failed."""

    lock, runs = STALE_LOCK, DETECTION_RUN
    every_seconds = 60.0

    def __init__(
        self, valkey: Valkey, clock: Clock, pending: Pending, given_up: GivenUp, *,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._pending, self._given_up = pending, given_up

    async def sweep(self, run: SweepRun) -> StopReason:
        await self._given_up.end_all()
        before = run.started_at - STALE_SECONDS
        while True:
            reason = run.reason_to_stop()
            if reason is not None:
                return reason
            found = await PENDING.index.range_by_score(self.valkey, most=before, limit=STEP)
            stale = [uid for uid, score in found if score < before]
            if not stale:
                return StopReason.LIST_EXHAUSTED
            for uid in stale:
                await self._end(run, uid)

    async def _end(self, run: SweepRun, uid: str) -> None:
        counted = Writes(self.valkey.layout)
        STALE.tally().incr("stale", at=run.started_at).store(counted)
        if await self._pending.drop(uid, counted, self.clock.now(), "stale") is not Ended.BEFORE:
            run.count("stale")
            _log.error("a channel lost a callback: nothing was heard of a touch", uid=uid)
