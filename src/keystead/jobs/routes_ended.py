"""The HTTP door to jobs that ended lately."""

from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from keystead.edge import Caller, PageRequest, page_of
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.jobs.inspection import Inspection
from keystead.jobs.models import EndedJob, EndedStatus

SCOPE: Final = "jobs"


class EndedShown(BaseModel):
    """How one job ended. What it was given and what it gave is not kept here."""

    uid: str = Field(examples=["q3Jx0V2mTq6v1cZ8wYb7Ug"], description="empty for a job of another program without one")
    name: str = Field(examples=["shop.greet"])
    queue: str = Field(examples=["hot"], description="hot is the one without a name, fair that of the tenants")
    status: EndedStatus
    ended_at: float = Field(examples=[1771200000.25], description="unix seconds")
    attempts: int = Field(examples=[1], description="tries, the last included; 0 for one that never began")
    worker: str = Field(examples=["web-1-4711-8a01c3"], description="empty when the worker died with it")
    queued_at: float = Field(examples=[1771200000.0], description="unix seconds")
    ran_seconds: float | None = Field(examples=[0.012], description="the last try; null for one that never began")
    error: str = Field(examples=[""], description="kind of the error of a failed one; words only where they are ours")


class EndedList(Paged):
    """Some jobs that ended, newest first."""

    items: list[EndedShown]
    total: int = Field(description="how many such jobs are listed: the newest 1,000 of each status at most")


def routes(inspection: Inspection) -> APIRouter:
    """Under the prefix of the HTTP interface."""
    router = APIRouter(tags=["jobs"])

    @router.get("/jobs/ended")
    async def ended(
        request: Request, status: Annotated[EndedStatus | None, Query(description="only those that ended so")] = None,
        name: Annotated[str, Query(max_length=300, description="only jobs of this name")] = "",
        queue: Annotated[str, Query(max_length=100, description="only of this one; hot is that without a name")] = "",
        limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
    ) -> EndedList:
        """Jobs that ended lately, newest first: the newest 1,000 of each status.

        Workers tell once a second what ended meanwhile, each the newest 200 of a status. A worker that is killed does
        not tell its last second; its jobs run again elsewhere.
        """
        caller: Caller = request.state.caller
        caller.require(SCOPE)
        asked = PageRequest(limit, cursor)
        found = await inspection.ended(
            [queue] if queue else None, name=name, status=status, most=limit + 1,
            after=asked.position(tuple[float, str]),
        )
        page = page_of(found.jobs, asked, _position)
        return EndedList(items=[shown(job) for job in page.items], total=found.total, next_cursor=page.next_cursor)

    return router


def shown(job: EndedJob) -> EndedShown:
    return EndedShown.model_validate(msgspec.structs.asdict(job))


def _position(job: EndedJob) -> tuple[float, str]:
    return job.ended_at, job.uid
