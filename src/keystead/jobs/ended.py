"""Jobs that ended lately: noted in memory as they end, handed over once a second, and read by whoever looks."""

from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

from keystead.clock import Clock, clock_seconds
from keystead.engine import Valkey
from keystead.jobs.endings import Ending
from keystead.jobs.handle import ENDED
from keystead.jobs.inspection_views import HOT, EndedPage, queue_named
from keystead.jobs.keys import ENDED_LATELY
from keystead.jobs.models import EndedJob, EndedStatus, JobRecord

MOST_NOTED: Final = 200  # of each status, by one worker, between two times of handing over
MOST_LISTED: Final = 1000  # of each status, by all of them
LONGEST_TEXT: Final = 200  # of a uid or a name; other programs may write longer ones

# A job, its queue, when its last try began by ``perf_counter``, and how many seconds that took.
Done = tuple[JobRecord, str, float, float]


class EndedNotes:
    """The newest endings of one worker that were not handed over yet; when there are too many, the oldest go.

    Kept by status, so that a thousand jobs that ended well do not push out the one that did not. ``only_bad``: what
    ended well is not kept. ``succeeded`` is on the path of every job, where a microsecond is a tenth of all work: it is
    given what is at hand, as one tuple, and nothing is made of it before it is handed over.
    """

    def __init__(self, worker: str, clock: Clock, *, only_bad: bool = False) -> None:
        self._worker, self._clock = worker, clock
        self._noted: dict[str, list[EndedJob]] = {status: [] for status in ENDED}
        self._done: deque[Done] = deque(maxlen=0 if only_bad else MOST_NOTED)
        self._only_bad = only_bad
        self.succeeded: Callable[[Done], None] = self._done.append

    def note(self, record: JobRecord, queue: str, ending: Ending, *, elsewhere: bool = False) -> None:
        """A job ended in whatever way; ``elsewhere``: its last worker was another one, that is gone."""
        if self._only_bad and ending.status == "succeeded":
            return
        noted = self._noted[ending.status]
        worker = "" if elsewhere else self._worker
        noted.append(_listed(record, queue, worker, ending.status, self._clock.now(), ending.attempts, ending.seconds,
                             ending.reason))
        if len(noted) >= 2 * MOST_NOTED:
            del noted[:-MOST_NOTED]

    async def hand_over(self, valkey: Valkey) -> None:
        """Add to the lists what was noted since the last time. When that is nothing, nothing is sent.

        What fails is kept, to be tried again with what comes: what was stored already is then the same once more.
        """
        taken = self._take()
        if not taken:
            return
        try:
            async with valkey.pipeline(transaction=False) as pipeline:
                for status, jobs in taken.items():
                    place = ENDED_LATELY.at(status=status)
                    place.add_many(pipeline, {job: job.ended_at for job in jobs})
                    pipeline.run(("ZREMRANGEBYRANK", place.name(pipeline.layout), 0, -MOST_LISTED - 1), int)
                await pipeline.execute()
        except BaseException:
            for status, jobs in taken.items():
                self._noted[status] = [*jobs, *self._noted[status]]
            raise

    def _take(self) -> dict[str, list[EndedJob]]:
        """What was noted, by status; none of it is noted any more."""
        counted, now = perf_counter(), self._clock.now()  # in this order: a pause between them makes no end too early
        self._noted["succeeded"] += [
            _listed(record, queue, self._worker, "succeeded",
                    now - clock_seconds(self._clock, counted - began - seconds), record.attempt + 1, seconds)
            for record, queue, began, seconds in self._done
        ]
        self._done.clear()
        taken = {status: sorted(jobs, key=lambda job: job.ended_at)[-MOST_NOTED:]
                 for status, jobs in self._noted.items() if jobs}
        for status in taken:
            self._noted[status] = []
        return taken


def _listed(
    record: JobRecord, queue: str, worker: str, status: EndedStatus, ended_at: float, attempts: int,
    seconds: float | None, error: str = "",
) -> EndedJob:
    """As it is stored: for people, and of bounded length. A uid that was cut would be that of no job."""
    uid = record.uid if len(record.uid) <= LONGEST_TEXT else ""
    text = error[:LONGEST_TEXT].encode(errors="replace").decode()
    return EndedJob(uid, record.name[:LONGEST_TEXT], queue or HOT, status, ended_at, attempts, worker,
                    record.queued_at, seconds, text)


async def ended_page(
    valkey: Valkey, queues: Sequence[str] | None = None, *, name: str = "", status: EndedStatus | None = None,
    most: int = 50, after: tuple[float, str] | None = None,
) -> EndedPage:
    """Some of the jobs that are listed, newest first: of these queues or all, of this name or any, ended so or anyhow.

    ``after``: time and uid of the last one of the page before. Then, and for a name or a queue, the whole lists are
    looked through: three thousand jobs at most.
    """
    wanted = {queue_named(queue).name or HOT for queue in queues or ()}
    whole = bool(wanted or name or after)
    async with valkey.pipeline(transaction=False) as pipeline:
        places = [ENDED_LATELY.at(status=each) for each in ([status] if status else ENDED)]
        asked = [(place.range(pipeline, 0, -1 if whole else most - 1, descending=True), place.size(pipeline))
                 for place in places]
        await pipeline.execute()
    found = sorted([job for jobs, _ in asked for job, _ in await jobs], key=_order, reverse=True)
    total = sum([await size for _, size in asked])
    if wanted or name:
        found = [job for job in found if (not name or job.name == name) and (not wanted or job.queue in wanted)]
        total = len(found)
    if after is not None:
        found = [job for job in found if _order(job) < after]
    return EndedPage(found[:most], total)


async def ended_job(valkey: Valkey, uid: str, queues: Sequence[str] | None = None) -> EndedJob | None:
    """How a job ended the last time that is listed; None when it is not, or not any more."""
    page = await ended_page(valkey, queues, most=len(ENDED) * MOST_LISTED)
    return next((job for job in page.jobs if job.uid == uid), None)


def _order(job: EndedJob) -> tuple[float, str]:
    """As the server does, whose members begin with the uid: what it gives of a list then ends where the rest begins."""
    return job.ended_at, job.uid
