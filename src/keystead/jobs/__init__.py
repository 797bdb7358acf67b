"""Jobs: enqueue, take, retry, recurring schedule, distributed scheduler, batch jobs."""

from keystead.jobs.batch_job import BatchJob
from keystead.jobs.batch_job_run import BatchRun, LastRunFacts, RunFacts, Step, StopReason
from keystead.jobs.book import HIGH_RESOURCE_COST, LOW_RESOURCE_COST, Category, Job, JobBook, Rate, job
from keystead.jobs.calendar import AnyOf, Calendar, preview
from keystead.jobs.callbacks import (
    STANDARD_POLICY,
    AfterFailure,
    FailurePolicy,
    callback_record,
    check_callback,
    closed,
    decode_data_raw,
    encode_data_raw,
    job_list,
    opened,
)
from keystead.jobs.client import Jobs
from keystead.jobs.context import RunningJob, current_job
from keystead.jobs.crew import Crew, Work
from keystead.jobs.cron import cron
from keystead.jobs.done import DoneWaiter, awaiting_done, say_done
from keystead.jobs.execution import Middleware
from keystead.jobs.fair import FairJobs, FairWorker
from keystead.jobs.handle import BatchHandle, BatchProgress, JobHandle
from keystead.jobs.inspection import Inspection
from keystead.jobs.job_outbox import JobOutbox, JobRelay
from keystead.jobs.keys import ROOMS_QUEUE
from keystead.jobs.models import EndedJob, JobRecord, JobRef, ProgressEvent, Task
from keystead.jobs.program import ProgramJobs, queue_names
from keystead.jobs.progress import Bounce, Progress, Told, telling
from keystead.jobs.progress_watch import ProgressBatch, watch
from keystead.jobs.records import encode_record
from keystead.jobs.recurring import RUN_ONCE, Missed, Recurring, RecurringList
from keystead.jobs.recurring_loop import RecurringLoop
from keystead.jobs.retry import NEVER, GiveUp, Retry, RetryLater
from keystead.jobs.scheduler import ScheduledTask, Scheduler, SchedulerOverview, SchedulerSettings, TaskState, TaskView
from keystead.jobs.scheduler_steps import Cancelled, IfKnown, Revived, Scheduled
from keystead.jobs.scheduler_worker import SchedulerWorker
from keystead.jobs.shutdown import Shutdown, TermSignal, graceful_sleep
from keystead.jobs.sweep_job import SweepJob, SweepRun
from keystead.jobs.tenants import Tenants, TenantView
from keystead.jobs.worker import Worker, WorkerSettings

__all__ = [
    "AfterFailure",
    "AnyOf",
    "BatchHandle",
    "BatchJob",
    "BatchProgress",
    "BatchRun",
    "Bounce",
    "Calendar",
    "Cancelled",
    "Category",
    "Crew",
    "DoneWaiter",
    "EndedJob",
    "FailurePolicy",
    "FairJobs",
    "FairWorker",
    "GiveUp",
    "HIGH_RESOURCE_COST",
    "IfKnown",
    "Inspection",
    "Job",
    "JobBook",
    "JobHandle",
    "JobOutbox",
    "JobRecord",
    "JobRef",
    "JobRelay",
    "Jobs",
    "LOW_RESOURCE_COST",
    "LastRunFacts",
    "Middleware",
    "Missed",
    "NEVER",
    "ProgramJobs",
    "Progress",
    "ProgressBatch",
    "ProgressEvent",
    "ROOMS_QUEUE",
    "RUN_ONCE",
    "Rate",
    "Recurring",
    "RecurringList",
    "RecurringLoop",
    "Retry",
    "RetryLater",
    "Revived",
    "RunFacts",
    "RunningJob",
    "STANDARD_POLICY",
    "Scheduled",
    "ScheduledTask",
    "Scheduler",
    "SchedulerOverview",
    "SchedulerSettings",
    "SchedulerWorker",
    "Shutdown",
    "Step",
    "StopReason",
    "SweepJob",
    "SweepRun",
    "Task",
    "TaskState",
    "TaskView",
    "TenantView",
    "Tenants",
    "TermSignal",
    "Told",
    "Work",
    "Worker",
    "WorkerSettings",
    "awaiting_done",
    "callback_record",
    "check_callback",
    "closed",
    "cron",
    "current_job",
    "decode_data_raw",
    "encode_data_raw",
    "encode_record",
    "graceful_sleep",
    "job",
    "job_list",
    "opened",
    "preview",
    "queue_names",
    "say_done",
    "telling",
    "watch",
]
