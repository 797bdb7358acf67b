"""What the pages on jobs show: read once for all viewers, and only while someone looks."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError, Unavailable
from keystead.jobs import ROOMS_QUEUE, Inspection, Scheduler, SchedulerOverview
from keystead.jobs.handle import ENDED
from keystead.jobs.inspection_views import (
    PLACES,
    EndedPage,
    ErrorGroup,
    JobPage,
    JobView,
    Place,
    RecurringView,
    Snapshot,
)
from keystead.jobs.models import EndedStatus

EVERY_SECONDS = 1.0
# So long after the last viewer looked, nothing is read any more.
WANTED_SECONDS = 5.0
ANSWER_SECONDS = 10.0
GROUPING_SECONDS = 60.0
SHOWN_JOBS = 25
SHOWN_RECURRING = 200
# Grouping reads every dead letter: after a long walk the rest is several times as long.
GROUP_REST_FACTOR = 5
# Equal numbers of dead letters need not be the same ones.
GROUPS_LAST_SECONDS = 15.0
LISTED: tuple[Place, ...] = tuple(place for place in PLACES if place != "dead")


@dataclass(frozen=True, slots=True)
class JobsLook:
    """Everything at about one moment. ``listed`` holds the first few jobs of each place, ``ended`` the newest few that
    ended so."""

    snapshot: Snapshot
    listed: dict[Place, JobPage]
    recurring: list[RecurringView]
    tasks: SchedulerOverview
    ended: Mapping[EndedStatus, EndedPage]

    @property
    def at(self) -> float:
        return self.snapshot.at

    @property
    def is_bare(self) -> bool:
        """Whether nobody has ever used jobs here; those of our own rooms do not count."""
        totals, queues = self.snapshot.totals, self.snapshot.queues
        counted = sum(q.queued + q.delayed + q.running + q.waiting + q.dead for q in queues)
        recurring = any(one.queue != ROOMS_QUEUE for one in self.recurring)
        return not (counted or len(queues) > 1 or self.snapshot.workers or totals.done or totals.failed or recurring
                    or self.has_tasks)

    @property
    def has_tasks(self) -> bool:
        tasks = self.tasks
        return bool(tasks.scheduled or tasks.ready or tasks.processing or tasks.dead or tasks.leader or tasks.paused)


class JobsWatch:
    """Reads while ``run`` and ``run_groups`` run and someone calls ``want``.

    Viewers take ``look``, ``groups`` and ``problem`` whenever they like. What was last read stays while the server is
    away.
    """

    def __init__(self, valkey: Valkey, inspection: Inspection) -> None:
        self.valkey, self.inspection = valkey, inspection
        self.look: JobsLook | None = None
        self.groups: list[ErrorGroup] | None = None
        self.problem: str | None = None
        self._scheduler = Scheduler(valkey)
        self._wanted_until = 0.0
        self._wanted = asyncio.Event()
        self._regroup = asyncio.Event()
        self._grouped: tuple[tuple[str, int], ...] = ()
        self._grouped_at = float("-inf")

    def want(self) -> None:
        """Someone looks: go on reading for a while."""
        self._wanted_until = asyncio.get_running_loop().time() + WANTED_SECONDS
        self._wanted.set()

    def is_stale(self) -> bool:
        """Whether what is known may be older than a second or two."""
        return self.look is None or self.inspection.now() - self.look.at > 2 * EVERY_SECONDS

    async def run(self) -> None:
        """Read each second until cancelled; rest while nobody looks."""
        loop = asyncio.get_running_loop()
        while True:
            if loop.time() > self._wanted_until:
                self._wanted.clear()
                await self._wanted.wait()
            began = loop.time()
            await self.read()
            await asyncio.sleep(max(0.1, began + EVERY_SECONDS - loop.time()))

    async def run_groups(self) -> None:
        """Group the dead letters by their errors whenever their number has changed, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._regroup.wait()
            self._regroup.clear()
            began = loop.time()
            await self.read_groups()
            await asyncio.sleep(max(EVERY_SECONDS / 2, GROUP_REST_FACTOR * (loop.time() - began)))

    async def read(self) -> None:
        """Look once. A server that is away leaves what was known."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                snapshot = _of_the_program(await self.inspection.snapshot())
                listed = {place: await self._listed(place, snapshot) for place in LISTED}
                recurring = await self.inspection.recurring(most=SHOWN_RECURRING)
                ended = {status: await self.inspection.ended(status=status, most=SHOWN_JOBS) for status in ENDED}
                self.look = JobsLook(snapshot, listed, recurring, await self._scheduler.overview(), ended)
            self.problem = None
        except (Unavailable, TimeoutError):
            return  # the banner of every page tells
        except (KeysteadError, ErrorReply) as error:
            self.problem = str(error)
            return
        counts, age = _dead_counts(snapshot), asyncio.get_running_loop().time() - self._grouped_at
        if self._grouped != counts or age > GROUPS_LAST_SECONDS:
            self._regroup.set()

    async def read_groups(self) -> None:
        """Group once."""
        if self.look is None:
            return
        snapshot = self.look.snapshot
        found: list[ErrorGroup] = []
        try:
            async with asyncio.timeout(GROUPING_SECONDS):
                for name, dead in _dead_counts(snapshot):
                    found += await self.inspection.dead_letters(name).groups() if dead else []
        except (KeysteadError, ErrorReply, TimeoutError):
            return
        self._grouped, self._grouped_at = _dead_counts(snapshot), asyncio.get_running_loop().time()
        self.groups = sorted(found, key=lambda group: (-group.count, group.queue, group.error))

    async def refresh(self) -> None:
        """Read all now, after someone stepped in: they want to see what came of it."""
        await self.read()
        await self.read_groups()

    async def _listed(self, place: Place, snapshot: Snapshot) -> JobPage:
        """The first few of one place over all queues; queues that have none there are not asked."""
        jobs: list[JobView] = []
        total = 0
        for queue in snapshot.queues:
            count: int = getattr(queue, place)
            total += count
            if count and len(jobs) < SHOWN_JOBS:
                jobs += (await self.inspection.jobs(place, queue.name, most=SHOWN_JOBS - len(jobs))).jobs
        # Jobs move on between two readings; where all are listed, their number is that of the list.
        return JobPage(jobs, 0, max(total, len(jobs)) if len(jobs) >= SHOWN_JOBS else len(jobs))


def _of_the_program(snapshot: Snapshot) -> Snapshot:
    """Without what our own rooms do by themselves, unless it failed: that must be seen."""
    workers = tuple(one for one in snapshot.workers if one.state is None or one.state.queues != ROOMS_QUEUE)
    queues = tuple(one for one in snapshot.queues if one.name != ROOMS_QUEUE or one.dead)
    return replace(snapshot, workers=workers, queues=queues)


def _dead_counts(snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    return tuple((queue.name, queue.dead) for queue in snapshot.queues)
