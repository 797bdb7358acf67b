"""The HTTP door of the fair queue: jobs for a tenant, what tenants hold and get, and pausing one."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from keystead.edge import Caller, PageRequest
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.errors import NotFound
from keystead.jobs.fair import FairJobs
from keystead.jobs.tenants import Tenants, TenantView
from keystead.patterns.fairqueue_keys import LONGEST_BLACKLIST_SECONDS

SCOPE: Final = "jobs"
Tenant = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["acme"])]


class WantedOfTenant(BaseModel):
    """A job to be queued for a tenant."""

    name: str = Field(min_length=1, max_length=300, examples=["reports.build"])
    kwargs: dict[str, Any] = Field(default_factory=dict, examples=[{"month": "2026-10"}])
    cost: int = Field(1, ge=1, le=1_000_000, description="what it takes of the tenant's turn")
    priority: int = Field(5, ge=0, le=9, description="9 first, among the tenant's own jobs")
    delay_seconds: float = Field(0, ge=0, le=365 * 86400)


class QueuedForTenant(BaseModel):
    """A job that is queued now."""

    id: str = Field(examples=["019a8d50-7d41-7abc-9def-012345678900"])


class PauseShown(BaseModel):
    """Why a tenant is not served."""

    reason: str
    until: float = Field(description="unix seconds")


class TenantShown(BaseModel):
    """One tenant at one moment."""

    tenant: str = Field(examples=["acme"])
    ready: int
    delayed: int
    running: int = Field(description="in workers' hands")
    parked: int
    dead: int = Field(description="given up after too many tries")
    asked: float = Field(description="cost of what it asked for in about the last minute")
    served: float = Field(description="cost of what was run for it in about the last minute")
    share: float = Field(ge=0, le=1, description="what of all that was served in about the last minute went to it")
    paused: bool
    pauses: list[PauseShown]


class TenantList(Paged):
    """Some tenants."""

    items: list[TenantShown]
    ready: int = Field(description="jobs of all tenants that wait")
    running: int = Field(description="jobs of all tenants in workers' hands")
    dead: int = Field(description="jobs of all tenants that were given up")


class PauseWanted(BaseModel):
    """For how long."""

    lasts_seconds: float = Field(default=LONGEST_BLACKLIST_SECONDS, gt=0, le=LONGEST_BLACKLIST_SECONDS)


class Resumed(BaseModel):
    """Whether the tenant was paused before."""

    changed: bool


class Retried(BaseModel):
    """How many dead jobs are queued again."""

    count: int


def routes(tenants: Tenants, jobs: FairJobs) -> APIRouter:
    """Under the prefix of the HTTP interface."""
    router = APIRouter(tags=["tenants"])

    @router.get("/tenants")
    async def list_tenants(
        request: Request, limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
        busiest: Annotated[bool, Query(
            description="only those that got or asked for most in the last minute, and those paused; no paging",
        )] = False,
    ) -> TenantList:
        """Tenants that hold something or are paused. One that changes while you page may come twice."""
        _caller(request).require(SCOPE)
        totals = await tenants.totals()
        if busiest:
            found, following = await tenants.busiest(limit), None
        else:
            page = await tenants.list(PageRequest(limit, cursor))
            found, following = list(page.items), page.next_cursor
        return TenantList(items=[_shown(each) for each in found], next_cursor=following, ready=totals.ready,
                          running=totals.leased, dead=totals.dead)

    @router.get("/tenants/{tenant}")
    async def get_tenant(request: Request, tenant: Tenant) -> TenantShown:
        """One tenant. There is nothing to register: a tenant is known while it holds, asks for or gets something."""
        _caller(request).require(SCOPE)
        found = await tenants.get(tenant)
        if not found.known:
            raise NotFound(f"nothing is known of a tenant {tenant}: no job waits or ran lately")
        return _shown(found)

    @router.post("/tenants/{tenant}/jobs", status_code=202)
    async def enqueue(request: Request, tenant: Tenant, wanted: WantedOfTenant) -> QueuedForTenant:
        """Queue a job for a tenant. However much one tenant queues, each gets its turn."""
        _caller(request).require(SCOPE)
        return QueuedForTenant(id=await jobs.enqueue(
            tenant, wanted.name, wanted.kwargs, cost=wanted.cost, priority=wanted.priority,
            delay_seconds=wanted.delay_seconds,
        ))

    @router.post("/tenants/{tenant}/pause", status_code=204)
    async def pause(request: Request, tenant: Tenant, wanted: PauseWanted | None = None) -> None:
        """Run nothing more for a tenant until it is resumed, or the time is over. What runs already goes on."""
        _caller(request).require(SCOPE)
        await tenants.pause(tenant, lasts_seconds=(wanted or PauseWanted()).lasts_seconds)

    @router.post("/tenants/{tenant}/resume")
    async def resume(request: Request, tenant: Tenant) -> Resumed:
        """Serve a tenant again, at once."""
        _caller(request).require(SCOPE)
        return Resumed(changed=await tenants.resume(tenant))

    @router.post("/tenants/{tenant}/retry")
    async def retry(request: Request, tenant: Tenant) -> Retried:
        """Run up to a hundred dead jobs of a tenant again, the oldest first."""
        _caller(request).require(SCOPE)
        return Retried(count=await tenants.retry_dead(tenant))

    return router


def _shown(view: TenantView) -> TenantShown:
    return TenantShown.model_validate(view.as_dict())


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
