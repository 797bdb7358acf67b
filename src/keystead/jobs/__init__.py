"""Jobs: enqueue, take, retry, recurring schedule, distributed scheduler, batch jobs."""

from keystead.jobs.book import HIGH_RESOURCE_COST, LOW_RESOURCE_COST, Category, Job, JobBook, Rate, job
from keystead.jobs.client import Jobs
from keystead.jobs.context import RunningJob, current_job
from keystead.jobs.execution import Middleware
from keystead.jobs.handle import BatchHandle, BatchProgress, JobHandle
from keystead.jobs.inspection import Inspection
from keystead.jobs.models import JobRecord, JobRef, Task
from keystead.jobs.records import encode_record
from keystead.jobs.retry import NEVER, GiveUp, Retry, RetryLater
from keystead.jobs.scheduler import ScheduledTask, Scheduler, SchedulerOverview, SchedulerSettings, TaskState, TaskView
from keystead.jobs.scheduler_steps import Cancelled, IfKnown, Revived, Scheduled
from keystead.jobs.scheduler_worker import SchedulerWorker
from keystead.jobs.worker import Worker, WorkerSettings

__all__ = [
    "BatchHandle",
    "BatchProgress",
    "Cancelled",
    "Category",
    "GiveUp",
    "HIGH_RESOURCE_COST",
    "IfKnown",
    "Inspection",
    "Job",
    "JobBook",
    "JobHandle",
    "JobRecord",
    "JobRef",
    "Jobs",
    "LOW_RESOURCE_COST",
    "Middleware",
    "NEVER",
    "Rate",
    "Retry",
    "RetryLater",
    "Revived",
    "RunningJob",
    "Scheduled",
    "ScheduledTask",
    "Scheduler",
    "SchedulerOverview",
    "SchedulerSettings",
    "SchedulerWorker",
    "Task",
    "TaskState",
    "TaskView",
    "Worker",
    "WorkerSettings",
    "current_job",
    "encode_record",
    "job",
]
