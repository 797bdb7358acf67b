"""Looking at queues, workers and jobs, and stepping in: cancel, pause, resume, dead letters tried again.

Nothing here is on the path of a job. Reads come in a few pipelines whatever the number of queues, and lists are read in
bounded pieces.
"""

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from keystead.clock import Clock
from keystead.engine import Pipeline, Valkey
from keystead.errors import Corrupt
from keystead.jobs.dead_letters import DeadLetters
from keystead.jobs.ended import ended_job, ended_page
from keystead.jobs.handle import ENDED, JobHandle
from keystead.jobs.inspection_views import (
    HOT,
    EndedPage,
    JobFound,
    JobPage,
    JobView,
    Place,
    QueueView,
    RecurringView,
    Snapshot,
    Totals,
    WorkerView,
    queue_named,
    view_of,
)
from keystead.jobs.keys import QUEUES, TOTALS, WORKER, WORKERS, Queue
from keystead.jobs.models import EndedStatus, JobRecord, JobState
from keystead.keys import ListRef, Reply
from keystead.keys.references_collections import scored_pairs

T = TypeVar("T")

CATEGORIES: Final = range(1, 10)  # whoever numbers theirs higher sees those jobs only once they run
SEARCHED_ITEMS: Final = 10_000
STEP_ITEMS: Final = 500
MOST_WORKERS: Final = 1000


class Inspection:
    """What goes on. Queues are named as people name them: ``hot`` is the one without a name."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock = valkey, clock
        self._names: Sequence[str] = ()  # as last read: where a job that has ended is looked for first

    def now(self) -> float:
        """The time by which ages are told."""
        return self._clock.now()

    # -- queues and workers -----------------------------------------------------------------------------------------

    async def queue_names(self) -> list[str]:
        """The hot queue, then every named one that was ever used."""
        return [HOT, *sorted(await QUEUES.at().members(self._valkey))]

    async def snapshot(self, names: Sequence[str] | None = None) -> Snapshot:
        """These queues or all, workers and totals as they are now."""
        return Snapshot(self.now(), await self.queues(names), await self.workers(), await self.totals())

    async def queues(self, names: Sequence[str] | None = None) -> tuple[QueueView, ...]:
        """How many jobs lie where, for these queues or all."""
        chosen = [queue_named(name) for name in (names or await self.queue_names())]
        holders = await self._holders(chosen)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [
                (
                    [place.length(pipeline) for place in _lists(queue)], queue.delayed.size(pipeline),
                    [queue.work.worker(worker).purgatory.length(pipeline) for worker in workers],
                    queue.waiting.size(pipeline), queue.work.dead.length(pipeline), queue.paused.is_raised(pipeline),
                )
                for queue, workers in zip(chosen, holders, strict=True)
            ]
            await pipeline.execute()
        found: list[QueueView] = []
        for queue, workers, replies in zip(chosen, holders, asked, strict=True):
            lists, delayed, running, waiting, dead, paused = replies
            found.append(QueueView(
                queue.name or HOT, queued=await _sum(lists), delayed=await delayed, running=await _sum(running),
                waiting=await waiting // 2, dead=await dead, paused=await paused, workers=len(workers),
            ))
        return tuple(found)

    async def _holders(self, queues: Iterable[Queue]) -> list[list[str]]:
        """For each queue the workers that may hold jobs of it."""
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [queue.work.workers_key.at(**queue.work.arguments).members(pipeline) for queue in queues]
            await pipeline.execute()
        return [sorted(await names) for names in asked]

    async def workers(self) -> tuple[WorkerView, ...]:
        """Workers that are there or were within the last hour, longest silent last."""
        listed = await WORKERS.at().range(self._valkey, 0, MOST_WORKERS - 1, descending=True)
        queues = [queue_named(name) for name in await self.queue_names()]
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [
                (name, seen_at, WORKER.at(name).get(pipeline), [_beats(queue, name, pipeline) for queue in queues])
                for name, seen_at in listed
            ]
            await pipeline.execute(raise_on_error=False)  # each is raised where it is awaited
        found: list[WorkerView] = []
        for name, seen_at, asked_state, beats in asked:
            alive = any([await beat for beat in beats])
            found.append(WorkerView(name, alive, seen_at, await _or_none(asked_state)))
        return tuple(found)

    async def totals(self) -> Totals:
        found = await TOTALS.at().all(self._valkey)
        return Totals(found.get("done", 0), found.get("failed", 0), found.get("retried", 0))

    async def recurring(self, names: Sequence[str] | None = None, *, most: int = 1000) -> list[RecurringView]:
        """Entries of the recurring jobs of these queues or all, by their next run; ``most`` of them at most."""
        chosen = [queue_named(name) for name in (names or await self.queue_names())]
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [
                (queue, keys.next.range(pipeline, 0, most - 1), keys.last.all(pipeline), keys.names.all(pipeline))
                for queue in chosen for keys in [queue.recurring]
            ]
            await pipeline.execute()
        found: list[RecurringView] = []
        for queue, scores, asked_last, asked_names in asked:
            last, names_of = await asked_last, await asked_names
            found += [RecurringView(queue.name or HOT, member, names_of.get(member, ""), next_at, last.get(member))
                      for member, next_at in await scores]
        return sorted(found, key=lambda view: view.next_at)[:most]

    # -- jobs -------------------------------------------------------------------------------------------------------

    async def jobs(self, place: Place, queue: str = HOT, *, first: int = 0, most: int = 50) -> JobPage:
        """Jobs of a queue that lie in one place, in the order in which they will be served.

        Dead ones come newest first, waiting ones in no order. Between two pages jobs move on.
        """
        chosen = queue_named(queue)
        if place == "queued":
            return await self._of_lists(place, chosen, [(view, "") for view in _lists(chosen)], first, most)
        if place == "running":
            [names] = await self._holders([chosen])
            lists = [(chosen.work.worker(name).purgatory, name) for name in names]
            return await self._of_lists(place, chosen, lists, first, most)
        if place == "delayed":
            return await self._delayed(chosen, first, most)
        if place == "waiting":
            return await self._waiting(chosen, first, most)
        total = await chosen.work.dead.length(self._valkey)
        start = max(0, total - first - most)
        letters = await self.dead_letters(queue).page(start, max(0, total - first - start)) if first < total else []
        return JobPage(letters[::-1], first, total)

    def dead_letters(self, queue: str = HOT) -> DeadLetters:
        """The dead letters of a queue, to be grouped, tried again or dropped."""
        return DeadLetters(self._valkey, queue_named(queue))

    async def _of_lists(
        self, place: Place, queue: Queue, lists: Sequence[tuple[ListRef[JobRecord], str]], first: int, most: int
    ) -> JobPage:
        """One page of several lists, as if one followed the other."""
        async with self._valkey.pipeline(transaction=False) as pipeline:
            lengths = [one.length(pipeline) for one, _ in lists]
            await pipeline.execute()
        total = 0
        found: list[JobView] = []
        for (one, worker), asked in zip(lists, lengths, strict=True):
            length = await asked
            start = max(0, first - total)
            left = most - len(found)
            if start < length and left > 0:
                raws = await self._range(one, start, left)
                found += [replace(view_of(place, queue, raw), worker=worker) for raw in raws]
            total += length
        return JobPage(found, first, total)

    async def _range(self, place: ListRef[JobRecord], first: int, most: int) -> list[bytes]:
        command = ("LRANGE", place.name(self._valkey.layout), first, first + most - 1)
        return await self._valkey.run(command, _raws, repeat=True)

    async def _delayed(self, queue: Queue, first: int, most: int) -> JobPage:
        total = await queue.delayed.size(self._valkey)
        command = ("ZRANGE", queue.delayed.name(self._valkey.layout), first, first + most - 1, "WITHSCORES")
        pairs = await self._valkey.run(command, scored_pairs, repeat=True)
        return JobPage([replace(view_of("delayed", queue, raw), due_at=due) for raw, due in pairs], first, total)

    async def _waiting(self, queue: Queue, first: int, most: int) -> JobPage:
        total = await queue.waiting.size(self._valkey) // 2
        name, found, cursor = queue.waiting.name(self._valkey.layout), dict[bytes, bytes](), b"0"
        while len(found) < first + most:
            command = ("HSCAN", name, cursor, "MATCH", "record:*", "COUNT", STEP_ITEMS)
            cursor, fields = await self._valkey.run(command, list, repeat=True)
            found.update(zip(fields[::2], fields[1::2], strict=True))
            if cursor == b"0":
                break
        raws = list(found.values())[first : first + most]
        return JobPage([view_of("waiting", queue, raw) for raw in raws], first, total)

    async def ended(
        self, queues: Sequence[str] | None = None, *, name: str = "", status: EndedStatus | None = None,
        most: int = 50, after: tuple[float, str] | None = None,
    ) -> EndedPage:
        """The newest jobs that ended, newest first: of these queues or all, of one name, in one way, or all of them.

        Listed are the newest thousand of each status. Each worker tells once a second what ended meanwhile, the newest
        two hundred of each status; one that is killed does not tell its last second. What our own rooms do is listed
        only where it failed or was called off. A page goes on ``after`` the time and uid of the last one before it, so
        that none comes twice while others end.
        """
        return await ended_page(self._valkey, queues, name=name, status=status, most=most, after=after)

    # -- one job ----------------------------------------------------------------------------------------------------

    async def find(self, uid: str, queues: Sequence[str] | None = None) -> JobFound | None:
        """One job by its uid, in these queues or all; None when nothing is known of it.

        A state that is kept is found at once. Where the job lies is found by looking through lists, up to ten thousand
        jobs in each. One that is found nowhere may still be among those that ended lately.
        """
        found = await self._find(uid, queues)
        if found is None or (found.state is None and found.view is None):
            ended = await ended_job(self._valkey, uid, queues)
            if ended is not None:
                return JobFound(uid, ended.queue, None, None, found is None or found.searched_all, ended)
        return found

    async def _find(self, uid: str, queues: Sequence[str] | None) -> JobFound | None:
        if not queues:
            # Most are asked for once they have ended: those lie nowhere, and nobody needs to know all queues for them.
            for name, state in (await self._states(uid, [queue_named(name) for name in self._names])).items():
                if state.status == "succeeded":
                    return JobFound(uid, name or HOT, state, None)
            queues = self._names = await self.queue_names()
        chosen = [queue_named(name) for name in queues]
        states = await self._states(uid, chosen)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [(queue, queue.waiting.get(pipeline, f"record:{uid}")) for queue in chosen]
            await pipeline.execute(raise_on_error=False)
        for queue, asked_record in asked:
            if (raw := await asked_record) is not None:
                return JobFound(uid, queue.name or HOT, states.get(queue.name), view_of("waiting", queue, raw))
        searched_all = True
        for queue in [queue for queue in chosen if queue.name in states] or chosen:
            kept = states.get(queue.name)
            if kept is not None and kept.status in ("succeeded", "cancelled"):
                return JobFound(uid, queue.name or HOT, kept, None)
            view, complete = await self._search(queue, uid)
            searched_all = searched_all and complete
            if view is not None or kept is not None:
                return JobFound(uid, queue.name or HOT, kept, view, searched_all)
        return None if searched_all else JobFound(uid, chosen[0].name or HOT, None, None, False)

    async def _states(self, uid: str, queues: Sequence[Queue]) -> dict[str, JobState]:
        """The kept states of a job, by queue; one that cannot be read counts as none."""
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [(queue.name, queue.job(uid).get(pipeline)) for queue in queues]
            await pipeline.execute(raise_on_error=False)
        return {name: state for name, each in asked if (state := await _or_none(each)) is not None}

    async def _search(self, queue: Queue, uid: str) -> tuple[JobView | None, bool]:
        """Look where a job is soonest found: held by workers, then delayed, dead, queued."""
        complete = True
        for place in ("running", "delayed", "dead", "queued"):
            for first in range(0, SEARCHED_ITEMS, STEP_ITEMS):
                page = await self.jobs(place, queue.name or HOT, first=first, most=STEP_ITEMS)
                for view in page.jobs:
                    if view.uid == uid:
                        return view, True
                if first + STEP_ITEMS >= page.total:
                    break
            else:
                complete = False
        return None, complete

    # -- stepping in ------------------------------------------------------------------------------------------------

    async def cancel(self, uid: str, queues: Sequence[str] | None = None) -> bool:
        """Ask that a job does not run, or stops; says false when it is known to have ended, or nothing is known.

        It is looked for in these queues or all. In one too long to be searched it is asked for all the same.
        """
        found = await self.find(uid, queues)
        if found is None or (found.view is not None and found.view.place == "dead"):
            return False
        if found.ended is not None and found.searched_all:
            return False
        if found.state is not None and found.state.status in ENDED and found.view is None:
            return False
        unknown = found.view is None and found.state is None
        names = list(queues or await self.queue_names()) if unknown else [found.queue]
        handles = [JobHandle(uid, queue_named(name).name, self._valkey, self._clock) for name in names]
        return any([await handle.cancel() for handle in handles])

    async def pause(self, queue: str = HOT) -> None:
        """Let nobody take jobs of this queue until ``resume``. Those that run are not touched."""
        await queue_named(queue).paused.raise_flag(self._valkey)

    async def resume(self, queue: str = HOT) -> bool:
        """Let jobs of this queue be taken again; says whether it was paused."""
        return await queue_named(queue).paused.lower_flag(self._valkey)


def _lists(queue: Queue) -> list[ListRef[JobRecord]]:
    """Where jobs of a queue wait for a worker, in the order in which they are served."""
    return [*(queue.category(category) for category in CATEGORIES), queue.work.queue]


def _beats(queue: Queue, worker: str, on: Pipeline) -> Awaitable[bool]:
    return queue.work.alive_key.at(**queue.work.arguments, worker=worker).is_raised(on)


async def _sum(counts: Iterable[Awaitable[int]]) -> int:
    return sum([await count for count in counts])


async def _or_none(asked: Awaitable[T | None]) -> T | None:
    """What was asked for; None for what does not decode: it must not hide the rest."""
    try:
        return await asked
    except Corrupt:
        return None


def _raws(reply: Reply) -> list[bytes]:
    return list(reply)
