"""The HTTP door of touches: sending one, what became of it, the latest ones, what a person got, and what waits."""

from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from keystead.edge import Caller, PageRequest
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub
from keystead.jobs import ROOMS_QUEUE, JobRef
from keystead.messaging.touches.door import Messaging
from keystead.messaging.touches.history import History
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.points import TouchPoints
from keystead.messaging.touches.queues import RUNS, QueueInfo, Queues
from keystead.messaging.touches.routes_latest import latest_routes
from keystead.messaging.touches.routes_points import point_routes
from keystead.messaging.touches.tracing import Tracer
from keystead.messaging.touches.trials import Trials

SCOPE: Final = "messaging"
_Sub = Annotated[str, Field(min_length=1, max_length=200)]
_Uid = Annotated[str, Path(min_length=1, max_length=200)]


class CallbackGiven(BaseModel):
    """A job of yours that is to run."""

    name: str = Field(min_length=1, max_length=200)
    kwargs: dict[str, Any] = {}
    queue: str = Field(default="", max_length=100)


class TouchGiven(BaseModel):
    """An event that a person is to be told of."""

    user_sub: _Sub
    event_slug: str = Field(min_length=2, max_length=255)
    channel: Channel | None = Field(default=None, description="absent for every channel that reaches the person")
    event_parameters: dict[str, Any] = {}
    on_success: CallbackGiven | None = None
    on_failure: CallbackGiven | None = None
    uid: str | None = Field(default=None, min_length=1, max_length=90, pattern=r"^[A-Za-z0-9_-]+$",
                            description="given again within a day, nothing is sent twice")
    lane: str = Field(default="normal", pattern="^(high|normal|low)$")


class TouchesQueued(BaseModel):
    """The touches that were queued, one for each channel."""

    uids: list[str]


class TouchOfPerson(BaseModel):
    """One touch of a person: what it said, where it went and where it arrived."""

    uid: str = Field(examples=["tch_4yTkW2_sms"])
    at: float = Field(description="when it was planned, or queued while it waits for that; unix seconds")
    event: str = Field(examples=["daily_reminder"], description="slug of the touch point")
    channel: str = Field(examples=["sms"])
    status: str = Field(examples=["arrived"], description="the best that is known of any destination")
    message: dict[str, Any] = Field(description="what it said, once that is known")
    destinations: list[str] = Field(examples=[["+15005550001"]])
    arrived: list[str] = Field(examples=[["+15005550001"]], description="destinations that it reached")
    reason: str = Field(examples=[""], description="why it went no further, where that is known")
    waits: bool = Field(description="whether news of it is awaited")


class TouchesOfPerson(Paged):
    """Some touches of a person, newest first."""

    items: list[TouchOfPerson]


def routes(
    messaging: Messaging, points: TouchPoints, trials: Trials, history: History, tracer: Tracer, queues: Queues
) -> APIRouter:
    """Under the prefix of the HTTP interface; all of it needs the scope ``messaging``."""
    router = APIRouter(tags=["touches"])

    @router.post("/touches", status_code=202, responses={404: {}})
    async def send(request: Request, given: TouchGiven) -> TouchesQueued:
        """Tell a person of an event. Callbacks run once it is known whether it arrived."""
        require(request)
        uids = await messaging.touch(
            given.user_sub, given.event_slug, channel=given.channel, parameters=given.event_parameters,
            on_success=_job(given.on_success), on_failure=_job(given.on_failure), uid=given.uid, lane=given.lane,
        )
        return TouchesQueued(uids=list(uids))

    router.include_router(latest_routes(history, require))

    @router.get("/touches/{uid}/trace")
    async def trace(request: Request, response: Response, uid: _Uid) -> list[dict[str, Any]]:
        """Everything that is known of a touch, or of a message: steps, where it is, jobs, rows and counts."""
        require(request)
        live(response)
        found = await tracer.trace(uid)
        if not found:
            raise NotFound("nothing is known of it, or not any more")
        return [asdict(event) for event in found]

    @router.get("/users/{user_sub}/touches")
    async def person(
        request: Request, response: Response, user_sub: Annotated[str, Path(min_length=1, max_length=200)],
        limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
    ) -> TouchesOfPerson:
        """What a person was sent, newest first."""
        require(request)
        live(response)
        page = await history.page(UserSub(user_sub), PageRequest(limit, cursor))
        items = [TouchOfPerson(**asdict(touch)) for touch in page.items]
        return TouchesOfPerson(items=items, next_cursor=page.next_cursor)

    @router.get("/admin/touch/send_queue_info")
    async def send_queue_info(request: Request, response: Response) -> dict[str, Any]:
        """Touches that wait to be made into messages."""
        require(request)
        live(response)
        return _shown(await queues.to_send())

    @router.get("/admin/touch/log_queue_info")
    async def log_queue_info(request: Request, response: Response) -> dict[str, Any]:
        """Rows that wait to be written."""
        require(request)
        live(response)
        return _shown(await queues.to_log())

    @router.get("/admin/touch/pending_sorted_set_info")
    async def pending_info(request: Request, response: Response) -> dict[str, Any]:
        """Touches that wait for news."""
        require(request)
        live(response)
        info = await queues.pending()
        return {**_shown(info), "num_overdue": info.overdue}

    @router.get("/admin/touch/{job}")
    async def last_run(request: Request, response: Response, job: _Uid) -> dict[str, Any]:
        """The last run of a job: last_send_job, last_log_job or last_stale_detection_job."""
        require(request)
        live(response)
        if job not in RUNS:
            raise NotFound(f"there is no such page; the runs are {', '.join(RUNS)}")
        return await queues.last_run(job)

    router.include_router(point_routes(points, trials, require))
    return router


def require(request: Request) -> None:
    caller: Caller = request.state.caller
    caller.require(SCOPE)


def live(response: Response) -> None:
    response.headers["cache-control"] = "no-store"


def _job(given: CallbackGiven | None) -> JobRef | None:
    if given is None:
        return None
    if given.queue == ROOMS_QUEUE:  # what runs there may do more than whoever sends messages may
        raise Invalid(f"callbacks are jobs of your own; the queue {ROOMS_QUEUE} is for ours")
    return JobRef(given.name, given.kwargs, given.queue) if given.queue else JobRef(given.name, given.kwargs)


def _shown(info: QueueInfo) -> dict[str, Any]:
    return {"length": info.length, "oldest_at": info.oldest_at}
