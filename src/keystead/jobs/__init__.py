"""Jobs: enqueue, take, retry, recurring schedule, distributed scheduler, batch jobs."""

from keystead.jobs.book import HIGH_RESOURCE_COST, LOW_RESOURCE_COST, Category, Job, JobBook, Rate, job
from keystead.jobs.models import JobRecord, JobRef
from keystead.jobs.retry import NEVER, GiveUp, Retry, RetryLater

__all__ = [
    "Category",
    "GiveUp",
    "HIGH_RESOURCE_COST",
    "Job",
    "JobBook",
    "JobRecord",
    "JobRef",
    "LOW_RESOURCE_COST",
    "NEVER",
    "Rate",
    "Retry",
    "RetryLater",
    "job",
]
