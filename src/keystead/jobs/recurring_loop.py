"""The loop that queues recurring jobs when they are due. Any number may run at once, each run is queued once.

A loop may die at any instruction: what it has not queued, the next one does. One script queues the due runs of an entry
and lets it wait for its next one, and it refuses where another loop has done so already.
"""

import asyncio
import contextlib
from enum import Enum

from keystead.clock import Clock, SystemClock, real_seconds
from keystead.engine import Script, Valkey, sync_clock
from keystead.errors import Conflict
from keystead.jobs.keys import QUEUES
from keystead.jobs.recurring import Recurring, RecurringList
from keystead.telemetry import counts, logger

UPDATE = Script("keystead.jobs", "scripts/recurring_update.lua")
RUN = Script("keystead.jobs", "scripts/recurring_run.lua")

PAUSE_SECONDS = 10.0  # after an error, and between looks at a list that is not ours
CHECK_SECONDS = 60.0  # between looks whether everything of the list is still there
LONGEST_SLEEP_SECONDS = 5.0  # what other loops changed is noticed by then
DESERTED_SECONDS = 60.0  # so late is nothing that a loop serves
AHEAD_SECONDS = 3600.0  # a run further in the future was queued by a clock that was wrong
DUE_ITEMS = 100
UPDATE_TRIES = 100

counts.describe("recurring_runs_queued", "runs of recurring jobs that this process queued, by job")

_log = logger("jobs")


class Standing(Enum):
    """What a loop has to say in the matter."""

    BEGINS = "begins"
    SERVES = "ours"
    OLDER = "older"  # a list with a larger version is in force
    ASIDE = "aside"  # a loop with the same version and another list began later


class RecurringLoop:
    """Serves a list until it is stopped. Without a clock it goes by the server's time."""

    def __init__(self, valkey: Valkey, jobs: RecurringList, *, clock: Clock | None = None) -> None:
        self.jobs = jobs
        self.standing = Standing.BEGINS
        self.clock: Clock = clock or SystemClock()
        self._follows_server = clock is None
        self._valkey = valkey
        self._keys = jobs.queue.recurring
        self._has_served = False
        self._check_at = float("-inf")
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End ``run`` as soon as what it is doing is done. May be called before it."""
        self._stopping.set()

    async def run(self) -> None:
        """Queue what is due until ``stop``. An error is reported, and the loop begins anew after a pause."""
        while not self._stopping.is_set():
            try:
                pause = await self.step()
            except Exception:
                _log.exception("the loop of recurring jobs failed and will try again", pause_seconds=PAUSE_SECONDS)
                self._check_at, pause = float("-inf"), PAUSE_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def step(self) -> float:
        """Queue what is due now, and say how many seconds may pass before the next step."""
        if self.standing is not Standing.SERVES or self.clock.now() >= self._check_at:
            await self._update()
        if self.standing is not Standing.SERVES:
            return PAUSE_SECONDS
        waiting = await self._keys.next.range(self._valkey, 0, DUE_ITEMS - 1)
        now = self.clock.now()
        for member, due_at in waiting:
            if due_at > now:
                return min(real_seconds(self.clock, due_at - now), LONGEST_SLEEP_SECONDS)
            entry = self.jobs.by_hash.get(member)
            if entry is None:
                self._check_at = float("-inf")  # nobody can run it; the update takes it away
            elif not await self._queue(entry, due_at, now):
                self.standing = Standing.BEGINS
                return PAUSE_SECONDS
        return 0.0 if waiting else 1.0

    async def _queue(self, entry: Recurring, due_at: float, now: float) -> bool:
        """Queue the due runs of one entry, unless another loop has; says whether the list is still in force."""
        runs = entry.due_runs(due_at, now)
        outcome = await RUN(
            self._valkey,
            keys=[self._keys.next, self._keys.hash, self._keys.last, self.jobs.queue.work.queue],
            args=(
                self.jobs.hash, entry.hash, due_at, entry.when.next_after(now), runs[-1] if runs else 0,
                *(entry.record(run, now) for run in runs),
            ),
        )  # fmt: skip
        if outcome == 1 and runs:
            counts.add("recurring_runs_queued", len(runs), job=entry.name)
        return bool(outcome != -1)

    async def _update(self) -> None:
        """Bring what waits in line with the list. Members that other loops lost or left in purgatory come back."""
        if self._follows_server and isinstance(self.clock, SystemClock):
            await sync_clock(self._valkey, self.clock)
        if self.jobs.queue.name:  # before the list is in force: it is seen from the first moment on
            await QUEUES.at().add(self._valkey, self.jobs.queue.name)
        for _ in range(UPDATE_TRIES):
            answer = await self._try_update()
            if answer != b"moved":
                break
        else:
            raise Conflict(f"recurring jobs changed under {UPDATE_TRIES} updates in a row")
        before, self.standing = self.standing, Standing(answer.decode())
        if self.standing is Standing.SERVES:
            self._has_served = True
            self._check_at = self.clock.now() + CHECK_SECONDS
        if self.standing is not before:
            tell = _log.debug if self.standing is Standing.SERVES else _log.info
            tell("recurring jobs", queue=self.jobs.queue.name or "hot", standing=self.standing.name.lower(),
                 version=self.jobs.version)

    async def _try_update(self) -> bytes:
        on, keys = self._valkey, self._keys
        scores = dict(await keys.next.range(on))
        ran = await keys.last.all(on)
        now = self.clock.now()  # after the reading: a run that another loop took out of the set was due by now
        entries: list[str] = []
        for member, entry in self.jobs.by_hash.items():
            seen, last = scores.get(member), ran.get(member, now)
            # The loop that queued the last run may have a clock that is a little ahead of ours.
            new = entry.when.next_after(last if now < last <= now + AHEAD_SECONDS else now)
            if seen is None:
                entries += (member, "", str(new), entry.name)
            else:  # an overdue run is not put off
                entries += (member, repr(seen), repr(min(seen, new)), entry.name)
        begins = 0 if self._has_served else 1
        answer: bytes = await UPDATE(
            on,
            keys=[keys.next, keys.hash, keys.purgatory, keys.last, keys.version, keys.names],
            args=(self.jobs.hash, self.jobs.version, begins, now - DESERTED_SECONDS, *entries),
        )
        return answer
