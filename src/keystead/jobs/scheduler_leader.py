"""The leader's work: move due tasks to the queue, and put back tasks whose worker is gone."""

import asyncio
import time

from keystead.clock import Clock, real_seconds
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.jobs import scheduler_steps as steps
from keystead.jobs.keys import SCHEDULER_LEADER
from keystead.jobs.scheduler import SchedulerSettings
from keystead.patterns import Leadership, Term
from keystead.patterns.leader import LeaderAt
from keystead.telemetry import counts, logger

SHORTEST_PAUSE_SECONDS = 0.001
AFTER_FAULT_SECONDS = 10.0

counts.describe("scheduler_tasks_promoted", "due tasks that this process moved to the queue")
counts.describe("scheduler_tasks_reclaimed", "tasks that this process put back since nobody worked on them any more")
counts.describe("scheduler_tasks_unknown", "ids that were due and had no task")

_log = logger("jobs")


class Promoter:
    """One instance's part in leading: stands for election, and does the leader's work while it leads.

    Every step names the term it belongs to and is refused by the server once another leads, so a leader that was
    stopped for a while does nothing when it wakes.
    """

    def __init__(
        self, valkey: Valkey, settings: SchedulerSettings, clock: Clock, *, instance: str,
        leader: LeaderAt | None = None,
    ) -> None:
        self._valkey = valkey
        self._settings = settings
        self._clock = clock
        self._instance = instance
        self._leader = leader or SCHEDULER_LEADER.at()

    async def run(self, stop: asyncio.Event) -> None:
        """Take part until ``stop`` is set; then resign, so that another leads at once."""
        async with (
            self._leader.campaign(self._valkey, instance=self._instance) as leadership,
            asyncio.TaskGroup() as tasks,
        ):
            leading = tasks.create_task(self._lead(leadership))
            await stop.wait()
            leading.cancel()

    async def _lead(self, leadership: Leadership) -> None:
        while True:
            await leadership.lead(lambda term: self._serve(leadership, term))
            await leadership.resign()  # the server says that another leads; do not wait to find out by the lease

    async def _serve(self, leadership: Leadership, term: Term) -> None:
        """Do the leader's work until the server says that this term is over."""
        reclaim_at = 0.0
        while leadership.is_leader:
            try:
                if time.monotonic() >= reclaim_at:
                    reclaimed = await self.reclaim_once(term)
                    if reclaimed is None:
                        return
                    # A task that was just seen without a lease is looked at again when its grace is over.
                    soon = self._settings.grace_seconds if reclaimed.waiting else self._settings.reclaim_seconds
                    reclaim_at = time.monotonic() + min(soon, self._settings.reclaim_seconds)
                promoted = await self.promote_once(term)
                if promoted is None:
                    return
                pause = self._pause_after(promoted)
            except Unavailable:
                pause = self._settings.promote_seconds
            except Exception:
                _log.exception("moving due tasks failed", instance=self._instance)
                pause = AFTER_FAULT_SECONDS
            if pause > 0:
                await asyncio.sleep(min(pause, max(reclaim_at - time.monotonic(), SHORTEST_PAUSE_SECONDS)))

    async def promote_once(self, term: Term) -> steps.Promoted | None:
        """Move one batch of what is due; None when the term is over."""
        most = self._settings.promote_items
        promoted = await steps.promote(self._valkey, term.value, most, now=self._clock.now())
        if promoted is not None:
            counts.add("scheduler_tasks_promoted", promoted.moved)
            if promoted.dropped:
                counts.add("scheduler_tasks_unknown", promoted.dropped)
                _log.warning("ids were due that have no task", count=promoted.dropped)
        return promoted

    async def reclaim_once(self, term: Term) -> steps.Reclaimed | None:
        """Put back what nobody works on any more; None when the term is over."""
        found = await steps.reclaim(
            self._valkey, term.value, now=self._clock.now(), grace_seconds=self._settings.grace_seconds
        )
        if found is not None and (found.returned or found.dead or found.dropped):
            counts.add("scheduler_tasks_reclaimed", found.returned)
            _log.warning("tasks had lost their worker", returned=found.returned, dead=found.dead, dropped=found.dropped)
        return found

    def _pause_after(self, promoted: steps.Promoted) -> float:
        """How long nothing can be due; nothing at all when the batch was full."""
        if promoted.moved + promoted.dropped >= self._settings.promote_items:
            return 0.0
        pause = self._settings.promote_seconds
        if promoted.next_at is not None:
            pause = min(pause, real_seconds(self._clock, promoted.next_at - self._clock.now()))
        return max(pause, SHORTEST_PAUSE_SECONDS)
