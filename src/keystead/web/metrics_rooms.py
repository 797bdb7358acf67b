"""What waits in the rooms, as numbers: asked when somebody reads the metrics, in a few round trips."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keystead.alerting import PLACES
from keystead.app import Running
from keystead.clock import real_seconds
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.jobs import Inspection
from keystead.jobs.inspection_views import queue_named
from keystead.operations import WaitingPlace
from keystead.operations.watchers import oldest_waiting
from keystead.reminders.keys import QUEUED
from keystead.stats import late_days
from keystead.stats.keys import ROTATION_RUN
from keystead.telemetry import Labels, Sample

ANSWER_SECONDS: Final = 3.0
MOST_QUEUES: Final = 100

# Name, labels and meaning of every number that is read here; the documentation is made of it.
GAUGES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "queue_items": (("queue", "place"), "jobs in a queue by place: queued, delayed, running, waiting or dead"),
    "queue_paused": (("queue",), "1 while nobody takes jobs of this queue"),
    "queue_oldest_seconds": (("queue",), "how long the oldest job or message of a queue has waited; 0 when none does"),
    "waiting_items": (("place",), "messages of a channel, touches or rows of their log that wait"),
    "workers": (("state",), "workers of jobs, by whether they beat: alive or silent"),
    "jobs_ended": (("outcome",), "jobs of the program that ended, over all processes, ever"),
    "reminders_queued": ((), "daily reminders that have their time and wait for it"),
    "reminders_late_seconds": ((), "how long ago the first of them was due; 0 when none is late"),
    "stats_rotation_age_seconds": ((), "time since the last run of the rotation began; absent before the first"),
    "stats_rotation_run_seconds": ((), "how long that run took"),
    "stats_families_late": ((), "families with a day that was due to leave and is still here"),
    "alerts_open": (("severity",), "alerts that are open"),
}


@dataclass(slots=True)
class _Gathered:
    samples: list[Sample]

    def add(self, name: str, value: float, **labels: str) -> None:
        names, says = GAUGES[name]
        found: Labels = tuple((label, labels[label]) for label in names)
        self.samples.append(Sample(name, says, "gauge", found, value))


async def room_samples(running: Running) -> list[Sample]:
    """Everything in ``GAUGES``. What cannot be had in time is left out: a reader sees a gap and not a zero."""
    gathered = _Gathered([])
    for part in (_queues, _waiting, _reminders, _rotation, _alerts):
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await part(running, gathered)
        except (KeysteadError, ErrorReply, TimeoutError):
            continue
    return gathered.samples


async def _queues(running: Running, gathered: _Gathered) -> None:
    inspection = Inspection(running.valkey, running.clock)
    snapshot = await inspection.snapshot((await inspection.queue_names())[:MOST_QUEUES])
    for queue in snapshot.queues:
        for place in ("queued", "delayed", "running", "waiting", "dead"):
            gathered.add("queue_items", getattr(queue, place), queue=queue.name, place=place)
        gathered.add("queue_paused", int(queue.paused), queue=queue.name)
    alive = sum(worker.alive for worker in snapshot.workers)
    gathered.add("workers", alive, state="alive")
    gathered.add("workers", len(snapshot.workers) - alive, state="silent")
    for outcome in ("done", "failed", "retried"):
        gathered.add("jobs_ended", getattr(snapshot.totals, outcome), outcome=outcome)
    places = [WaitingPlace(queue.name, (queue_named(queue.name).work.queue,)) for queue in snapshot.queues]
    now = running.clock.now()
    for name, _, oldest_at in await oldest_waiting(running.valkey, places):
        gathered.add("queue_oldest_seconds", _age(running, now, oldest_at), queue=name)


async def _waiting(running: Running, gathered: _Gathered) -> None:
    now = running.clock.now()
    unpaused = [WaitingPlace(place.name, place.lists) for place in PLACES]
    for name, count, oldest_at in await oldest_waiting(running.valkey, unpaused):
        gathered.add("waiting_items", count, place=name)
        gathered.add("queue_oldest_seconds", _age(running, now, oldest_at), queue=name)


async def _reminders(running: Running, gathered: _Gathered) -> None:
    gathered.add("reminders_queued", await QUEUED.size(running.valkey))
    due_at = await QUEUED.next_at(running.valkey)
    gathered.add("reminders_late_seconds", max(0.0, _age(running, running.clock.now(), due_at)))


async def _rotation(running: Running, gathered: _Gathered) -> None:
    run, now = await ROTATION_RUN.at().get(running.valkey), running.clock.now()
    if run is not None and run.started_at:
        gathered.add("stats_rotation_age_seconds", _age(running, now, run.started_at))
        gathered.add("stats_rotation_run_seconds", run.running_time or 0.0)
    late = await late_days(running.valkey, running.catalogue, now=now - running.settings.alerts.rotation_seconds)
    gathered.add("stats_families_late", len(late))


async def _alerts(running: Running, gathered: _Gathered) -> None:
    found = await running.alerts.open()
    for severity in ("warning", "critical"):
        gathered.add("alerts_open", sum(alert.severity == severity for alert in found), severity=severity)


def _age(running: Running, now: float, since: float | None) -> float:
    return 0.0 if since is None else real_seconds(running.clock, now - since)
