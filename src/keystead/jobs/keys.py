"""Every key of the jobs room: queues, recurring jobs, scheduled tasks, progress, workers."""

from dataclasses import dataclass
from typing import Final

from keystead.jobs.models import Control, EndedJob, JobRecord, JobState, ProgressEvent, Task, WorkerState
from keystead.keys import (
    KINDS,
    AtMost,
    Channel,
    FlagKey,
    FlagRef,
    IntegerKey,
    Keyspace,
    ListKey,
    ListRef,
    MapKey,
    MapRef,
    OnCorrupt,
    OpaqueNamespace,
    RecordKey,
    RecordRef,
    SetKey,
    SetRef,
    Sliding,
    SortedSetKey,
    SortedSetRef,
    StringKey,
    StringRef,
)
from keystead.patterns import DeadLetter, FairQueue, Inbox, Keepalives, Leader, SpacedSlots, WorkList
from keystead.patterns.worklist_items import DeadLetterCodec

HOT: Final = "hot"
ROOMS_QUEUE: Final = "keystead"  # jobs of our own rooms: workers of the user's program do not know them
ALIVE_SECONDS: Final = 3.0
TRIES_AFTER_CRASHES: Final = 3
ROOMS_TRIES: Final = 10  # ours bear being run again, and others wait for what they do
OPEN_SECONDS: Final = 30 * 86400
BATCH_SECONDS: Final = 30 * 86400
UNIQUE_SECONDS: Final = 7 * 86400
PROGRESS_SECONDS: Final = 1800
WORKER_SECONDS: Final = 15
TASK_LEASE_SECONDS: Final = 30
RATE_AHEAD_SECONDS: Final = 86400
FAIR_LEASE_SECONDS: Final = 10.0
TENANT_MINUTE_SECONDS: Final = 180
ENDED_SECONDS: Final = 86400

_CLIENT: Final = ("jobs.client",)
_WORKER: Final = ("jobs.worker",)
_BOTH: Final = ("jobs.client", "jobs.worker")
_RECURRING: Final = ("jobs.recurring",)
_INSPECTION: Final = ("jobs.inspection",)

JOBS = Keyspace("jobs", tag="jobs")


@dataclass(frozen=True, slots=True)
class RecurringRefs:
    """Where the recurring jobs of one queue are kept."""

    next: SortedSetRef[str]
    last: MapRef[int]
    names: MapRef[str]
    hash: StringRef[str]
    version: StringRef[str]
    purgatory: SetRef[str]


class RecurringKeys:
    """The keys of the recurring jobs of a queue, under its tag: one script queues a run and sets the next one."""

    def __init__(self, stem: str, tag: str, whose: str) -> None:
        self.next: SortedSetKey[str] = SortedSetKey(
            JOBS, stem, str, member="decimal hash of a recurring job", score="unix time of its next run", tag=tag,
            purpose=f"recurring jobs of {whose} by their next run", writers=_RECURRING,
            readers=(*_RECURRING, *_INSPECTION),
            dead_letter=OnCorrupt.MISS, scripts=("jobs/recurring_update.lua", "jobs/recurring_run.lua"),
        )
        self.last: MapKey[int] = MapKey(
            JOBS, f"{stem}:last", int, fields=("{hash}",), tag=tag, dead_letter=OnCorrupt.MISS, writers=_RECURRING,
            readers=(*_RECURRING, *_INSPECTION),
            purpose=f"unix time of the newest queued run of each recurring job of {whose}",
            scripts=("jobs/recurring_update.lua", "jobs/recurring_run.lua"),
        )
        self.names: MapKey[str] = MapKey(
            JOBS, f"{stem}:names", str, fields=("{hash}",), tag=tag, dead_letter=OnCorrupt.MISS, writers=_RECURRING,
            readers=_INSPECTION, purpose=f"name of the job of each recurring job of {whose}",
            scripts=("jobs/recurring_update.lua",),
        )
        self.hash: StringKey[str] = StringKey(
            JOBS, f"{stem}:hash", str, tag=tag, purpose=f"decimal hash of the whole list of recurring jobs of {whose}",
            writers=_RECURRING, readers=_RECURRING, scripts=("jobs/recurring_update.lua", "jobs/recurring_run.lua"),
        )
        self.version: StringKey[str] = StringKey(
            JOBS, f"{stem}:version", str, tag=tag, writers=_RECURRING, readers=_RECURRING,
            purpose=f"version:hash of the list of recurring jobs of {whose}; an older one does not replace it",
            scripts=("jobs/recurring_update.lua",),
        )
        self.purgatory: SetKey[str] = SetKey(
            JOBS, f"{stem}:purgatory", str, member="decimal hash of a recurring job", tag=tag, writers=_RECURRING,
            purpose=f"recurring jobs of {whose} that a loop of the older kind has popped and not put back yet",
            readers=_RECURRING, scripts=("jobs/recurring_update.lua",),
        )

    def at(self, **variables: str) -> RecurringRefs:
        return RecurringRefs(
            self.next.at(**variables), self.last.at(**variables), self.names.at(**variables), self.hash.at(**variables),
            self.version.at(**variables), self.purgatory.at(**variables),
        )


class QueueKeys:
    """The keys of a queue: ``work`` is its list with purgatories; the others serve jobs with options.

    ``stem`` begins the names of what lies beside the list, ``recurring`` those of recurring jobs. All share the tag of
    the queue.
    """

    def __init__(self, pattern: str, stem: str, purgatory: str, recurring: str, tag: str, whose: str) -> None:
        self.work: WorkList[JobRecord] = WorkList(
            JOBS, pattern, JobRecord, purgatory=purgatory, tries=TRIES_AFTER_CRASHES, alive_seconds=ALIVE_SECONDS,
            tag=tag, personal=True, purpose=f"jobs of {whose}, oldest left", writers=_BOTH, readers=_WORKER,
        )
        self.category: ListKey[JobRecord] = ListKey(
            JOBS, f"{pattern}:{{category}}", JobRecord, tag=tag, personal=True, kinds={"category": KINDS["integer"]},
            dead_letter=self.work.dead_key, purpose=f"jobs of {whose} that are sorted by the resources they need",
            writers=_BOTH, readers=_WORKER, scripts=("worklist/take_from.lua", "worklist/hand_over.lua"),
        )
        self.given_up: ListKey[DeadLetter] = ListKey(
            JOBS, f"{stem}:given_up", DeadLetterCodec(), tag=tag, personal=True, dead_letter=self.work.dead_key,
            purpose=f"jobs of {whose} that were there at too many crashes, until what follows from their end is done",
            writers=_WORKER, readers=_WORKER, scripts=("worklist/adopt.lua", "jobs/settle.lua"),
        )
        self.delayed: SortedSetKey[JobRecord] = SortedSetKey(
            JOBS, f"{stem}:delayed", JobRecord, member="a job", score="unix time when it is due", tag=tag,
            personal=True, purpose=f"jobs of {whose} that are to run later, or again", writers=_BOTH, readers=_WORKER,
            scripts=("jobs/enqueue.lua", "jobs/settle.lua", "jobs/retry.lua", "delayed/move_due.lua"),
        )
        self.job: RecordKey[JobState] = RecordKey(
            JOBS, f"{stem}:job:{{uid}}", JobState, tag=tag, ttl=AtMost(OPEN_SECONDS), personal=True,
            purpose=f"state and result of one job of {whose} that was asked to be kept", writers=_BOTH,
            readers=_BOTH, scripts=("jobs/enqueue.lua", "jobs/settle.lua", "jobs/retry.lua", "jobs/revive.lua"),
        )
        self.dependents: SetKey[str] = SetKey(
            JOBS, f"{stem}:dependents:{{uid}}", str, member="uid of a job that waits for this one", tag=tag,
            ttl=AtMost(OPEN_SECONDS), purpose="who waits for one job", writers=_BOTH, readers=_WORKER,
            scripts=("jobs/enqueue.lua", "jobs/settle.lua"),
        )
        self.waiting: MapKey[bytes] = MapKey(
            JOBS, f"{stem}:waiting", bytes, fields=("record:{uid}", "left:{uid}", "due:{uid}", "failed:{uid}"),
            tag=tag, personal=True,
            purpose="jobs that wait for others: the record, how many are left, when it may run, which one failed",
            writers=_BOTH, readers=_WORKER, scripts=("jobs/enqueue.lua", "jobs/settle.lua"),
        )
        self.batch: MapKey[bytes] = MapKey(
            JOBS, f"{stem}:batch:{{batch}}", bytes, fields=("total", "left", "failed", "then"), tag=tag,
            ttl=AtMost(BATCH_SECONDS), personal=True,
            purpose="jobs of a batch that have not ended, and the job that follows the last", writers=_BOTH,
            readers=_BOTH, scripts=("jobs/settle.lua", "jobs/revive.lua"),
        )
        self.unique: StringKey[str] = StringKey(
            JOBS, f"{stem}:unique:{{key}}", str, tag=tag, kinds={"key": KINDS["text"]}, ttl=AtMost(UNIQUE_SECONDS),
            personal=True, purpose="uid of the one job with this unique key", writers=_BOTH, readers=_CLIENT,
            scripts=("jobs/enqueue.lua", "jobs/settle.lua", "jobs/revive.lua"),
        )
        self.cancelled: SortedSetKey[str] = SortedSetKey(
            JOBS, f"{stem}:cancelled", str, member="uid of a job that is not to run", score="unix time of the wish",
            tag=tag, purpose=f"jobs of {whose} that were called off before they ran", writers=_BOTH, readers=_WORKER,
            scripts=("jobs/revive.lua",),
        )
        self.paused = FlagKey(
            JOBS, f"{stem}:paused", tag=tag, purpose=f"while it is there nobody takes jobs of {whose}",
            writers=_INSPECTION, readers=(*_WORKER, *_INSPECTION),
        )
        self.recurring = RecurringKeys(recurring, tag, whose)


HOT_KEYS = QueueKeys("jobs:hot", "jobs", "jobs:processing", "rjobs", "jobs", "the hot queue")
NAMED_KEYS = QueueKeys(
    "jobs:queue:{queue}", "jobs:queue:{queue}", "jobs:queue:{queue}:processing", "jobs:queue:{queue}:recurring",
    "jobs:{queue}", "a named queue",
)

# Beside the queue, so that mark and push are one step.
DELIVERED = Inbox(
    JOBS, "jobs:delivered:{uid}", purpose="a job of another slot's outbox that was queued",
    writers=("jobs.job_outbox",), readers=("jobs.job_outbox",),
)
DELIVERED_NAMED = Inbox(
    JOBS, "jobs:queue:{queue}:delivered:{uid}", tag="jobs:{queue}", writers=("jobs.job_outbox",),
    purpose="a job of another slot's outbox that was put into a named queue", readers=("jobs.job_outbox",),
)

DONE: Channel[bytes] = Channel(
    JOBS, "ps:job:{job_uid}", bytes, purpose="says done when a job that supports it has ended, well or not",
    writers=_WORKER, readers=("whoever waits for a job",),
)
CONTROL: Channel[Control] = Channel(
    JOBS, "ps:jobs:control", Control, purpose="what all workers are told at once: stop this job", writers=_CLIENT,
    readers=_WORKER,
)

# -- progress ----------------------------------------------------------------------------------------------------------

PROGRESS_EVENTS: ListKey[ProgressEvent] = ListKey(
    JOBS, "jobs:progress:events:{uid}", ProgressEvent, ttl=Sliding(PROGRESS_SECONDS, reads=False), personal=True,
    purpose="the last 50 steps a job told of, newest right", writers=_BOTH, readers=("jobs.progress",),
)
PROGRESS_COUNT = IntegerKey(
    JOBS, "jobs:progress:count:{uid}", ttl=Sliding(PROGRESS_SECONDS, reads=False),
    purpose="how many steps a job ever told of", writers=_BOTH, readers=("jobs.progress",),
)
PROGRESS: Channel[list[ProgressEvent]] = Channel(
    JOBS, "ps:jobs:progress:{uid}", list[ProgressEvent], personal=True, purpose="each step a job tells of, as it does",
    writers=_BOTH, readers=("jobs.progress",),
)

# -- workers -----------------------------------------------------------------------------------------------------------

QUEUES: SetKey[str] = SetKey(
    JOBS, "jobs:queues", str, member="name of a queue", purpose="named queues that were ever used",
    writers=(*_BOTH, *_RECURRING), readers=_INSPECTION,
)
WORKERS: SortedSetKey[str] = SortedSetKey(
    JOBS, "jobs:workers", str, member="a worker's name", score="unix time of its last sign of life",
    purpose="workers that are there, or were lately", writers=_WORKER, readers=_INSPECTION,
)
WORKER: RecordKey[WorkerState] = RecordKey(
    JOBS, "jobs:worker:{worker}", WorkerState, ttl=AtMost(WORKER_SECONDS),
    purpose="what one worker tells of itself each second", writers=_WORKER, readers=_INSPECTION,
)
TOTALS: MapKey[int] = MapKey(
    JOBS, "jobs:totals", int, fields=("done", "failed", "retried", "lost"),
    purpose="how many jobs ended how, ever", writers=_WORKER, readers=_INSPECTION,
)

# By status, so that the many that end well leave the others listed; all under one tag: told and read in one round trip.
ENDED_LATELY: SortedSetKey[EndedJob] = SortedSetKey(
    JOBS, "jobs:ended:{status:succeeded|failed|cancelled}", EndedJob, member="how one job ended, without its arguments",
    score="unix time when it ended", ttl=Sliding(ENDED_SECONDS, reads=False), dead_letter=OnCorrupt.MISS,
    purpose="the newest 1,000 jobs that ended so; of those that ended in one second, the newest 200 of each worker",
    writers=("jobs.ended",), readers=_INSPECTION,
)

# What is set here is the slowest rate, one run a day; ``rates`` reserves with that of the job.
RATE = SpacedSlots(
    JOBS, "jobs:rate:{name}", gap_seconds=RATE_AHEAD_SECONDS, most_ahead_seconds=RATE_AHEAD_SECONDS,
    purpose="when the next run of a job with a limited rate may begin", writers=_WORKER, readers=_WORKER,
)

# -- fair between tenants ----------------------------------------------------------------------------------------------

_FAIR: Final = ("jobs.fair",)
FAIR: FairQueue[JobRecord] = FairQueue(
    JOBS, "jobs:fair", item=JobRecord, shard="{tenant}", lease_seconds=FAIR_LEASE_SECONDS, cap=100, personal=True,
    keepalives=Keepalives(JOBS, ("jobs:fair",), pattern="jobs:fair:lease:{item_uuid}", writers=_FAIR, readers=_FAIR),
    purpose="jobs of many tenants, served in turns", writers=_FAIR, readers=_FAIR,
)


def _of_minute(pattern: str, purpose: str) -> SortedSetKey[str]:
    return SortedSetKey(
        JOBS, pattern, str, kinds={"unix_minute": KINDS["integer"]}, member="tenant, and !all for everybody",
        score="sum of the costs", ttl=Sliding(TENANT_MINUTE_SECONDS, reads=False), purpose=purpose, writers=_FAIR,
        readers=("jobs.tenants",), scripts=("jobs/tenants_count.lua",),
    )


ASKED = _of_minute("jobs:tenants:asked:{unix_minute}", "what tenants asked for in one minute, refusals included")
SERVED = _of_minute("jobs:tenants:served:{unix_minute}", "what was run for tenants in one minute, every try of it")

# -- the distributed scheduler -----------------------------------------------------------------------------------------

_TASKS: Final = ("jobs.scheduler",)


def _steps(*verbs: str) -> tuple[str, ...]:
    return tuple(f"jobs/task_{verb}.lua" for verb in verbs)


TASKS_SCHEDULED: SortedSetKey[str] = SortedSetKey(
    JOBS, "tasks:scheduled", str, member="id of a task", score="unix time when it is due", tag="tasks",
    purpose="tasks that are not due yet", writers=_TASKS, readers=_TASKS,
    scripts=_steps("schedule", "cancel", "promote", "fail", "revive"),
)
TASKS_PAYLOAD: MapKey[Task] = MapKey(
    JOBS, "tasks:payload", Task, fields=("{task_id:text}",), tag="tasks", personal=True,
    purpose="every task that has not ended", writers=_TASKS, readers=_TASKS,
    scripts=_steps("schedule", "cancel", "promote", "claim", "complete", "fail", "reclaim", "revive"),
)
TASKS_QUEUE: ListKey[str] = ListKey(
    JOBS, "tasks:queue:default", str, tag="tasks", purpose="ids of due tasks: pushed left, taken right", writers=_TASKS,
    readers=_TASKS, scripts=_steps("schedule", "promote", "claim", "reclaim"),
)
TASKS_PROCESSING: ListKey[str] = ListKey(
    JOBS, "tasks:processing", str, tag="tasks", purpose="ids of tasks that are being worked on", writers=_TASKS,
    readers=_TASKS, scripts=_steps("claim", "complete", "fail", "reclaim"),
)
TASKS_ACTIVE: StringKey[str] = StringKey(
    JOBS, "tasks:active:{task_id}", str, tag="tasks", kinds={"task_id": KINDS["text"]}, ttl=AtMost(TASK_LEASE_SECONDS),
    purpose="who works on a task: worker and claim, for as long as its lease lasts", writers=_TASKS, readers=_TASKS,
    scripts=_steps("cancel", "claim", "heartbeat", "complete", "fail", "reclaim"),
)
TASKS_ORPHANS: SortedSetKey[str] = SortedSetKey(
    JOBS, "tasks:orphans", str, member="id of a task", score="unix time when it was first seen without a lease",
    tag="tasks", purpose="tasks that nobody seems to work on any more", writers=_TASKS, readers=_TASKS,
    scripts=_steps("claim", "reclaim"),
)
TASKS_DEAD: MapKey[Task] = MapKey(
    JOBS, "tasks:dead", Task, fields=("{task_id:text}",), tag="tasks", personal=True,
    purpose="tasks that were given up, with their last error", writers=_TASKS, readers=_TASKS,
    scripts=_steps("fail", "reclaim", "revive"),
)
TASKS_PAUSED = FlagKey(
    JOBS, "tasks:paused", tag="tasks", purpose="while it is there no task begins", writers=_TASKS, readers=_TASKS,
    scripts=_steps("promote", "claim"),
)
SCHEDULER_LEADER = Leader(
    JOBS, "scheduler:leader", epoch="scheduler:epoch", tag="tasks", lease_seconds=15.0, renew_seconds=5.0,
    margin_seconds=3.0, purpose="the one instance that promotes due tasks", writers=_TASKS, readers=_TASKS,
)

ASYNQ = OpaqueNamespace(
    JOBS, "asynq:*", purpose="queues of the asynq library, of another program; only that library reads and writes them",
)


class Queue:
    """One queue and its keys: the hot queue, or a named one on a tag of its own.

    ``hot`` is what people call the one without a name; it never is the name of another.
    """

    def __init__(self, name: str = "") -> None:
        name = "" if name == HOT else name
        self.name = name
        self._keys = NAMED_KEYS if name else HOT_KEYS
        self._variables = {"queue": name} if name else {}
        self.work: WorkList[JobRecord] = self._keys.work.at(name) if name else self._keys.work
        if name == ROOMS_QUEUE:
            self.work = self.work.trying(ROOMS_TRIES)

    def __repr__(self) -> str:
        return f"Queue({self.name or 'hot'})"

    def category(self, category: int) -> ListRef[JobRecord]:
        return self._keys.category.at(**self._variables, category=category)

    def job(self, uid: str) -> RecordRef[JobState]:
        return self._keys.job.at(**self._variables, uid=uid)

    def dependents(self, uid: str) -> SetRef[str]:
        return self._keys.dependents.at(**self._variables, uid=uid)

    def batch(self, batch: str) -> MapRef[bytes]:
        return self._keys.batch.at(**self._variables, batch=batch)

    def unique(self, key: str) -> StringRef[str]:
        return self._keys.unique.at(**self._variables, key=key)

    @property
    def given_up(self) -> ListRef[DeadLetter]:
        return self._keys.given_up.at(**self._variables)

    @property
    def delayed(self) -> SortedSetRef[JobRecord]:
        return self._keys.delayed.at(**self._variables)

    @property
    def waiting(self) -> MapRef[bytes]:
        return self._keys.waiting.at(**self._variables)

    @property
    def cancelled(self) -> SortedSetRef[str]:
        return self._keys.cancelled.at(**self._variables)

    @property
    def paused(self) -> FlagRef:
        return self._keys.paused.at(**self._variables)

    @property
    def recurring(self) -> RecurringRefs:
        return self._keys.recurring.at(**self._variables)
