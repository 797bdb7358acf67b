"""The HTTP door of the jobs room: look, enqueue, step in; and progress, by web socket or server-sent events.

Everything needs the scope ``jobs``, except watching: for that a ticket for one job is enough, so that the page of a
person who waits needs no other right.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from keystead.clock import Clock
from keystead.edge import Caller, PageRequest, PositionNumber, Tickets, cursor_after, problem_of
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.engine import Valkey
from keystead.errors import Invalid, KeysteadError, NotFound
from keystead.jobs.client import Jobs, Wishes
from keystead.jobs.dead_letters import Choice, by_error, by_uid, every
from keystead.jobs.inspection import Inspection
from keystead.jobs.inspection_views import HOT, queue_named
from keystead.jobs.progress_watch import ProgressBatch, watch
from keystead.jobs.routes_ended import EndedShown, shown

SCOPE: Final = "jobs"
WATCH_PURPOSE: Final = "job progress"
WATCH_SECONDS: Final = 1800
LIVE_PATH: Final = "/jobs/live"
FIRST_MESSAGE_SECONDS: Final = 5.0
SEND_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 5.0
NORMAL, ERROR_BASE = 1000, 4000

Place = Literal["queued", "delayed", "running", "waiting", "dead"]
QueueName = Annotated[str, Query(max_length=100, description="hot is the one without a name")]
Uid = Annotated[str, Path(pattern=r"^[!-9;-~]{1,200}$", examples=["q3Jx0V2mTq6v1cZ8wYb7Ug"])]


class Wanted(BaseModel):
    """A job to be queued."""

    name: str = Field(min_length=1, max_length=300, examples=["runners.example"])
    kwargs: dict[str, Any] = Field(default_factory=dict, examples=[{"name": "Ada"}])
    queue: str = Field(HOT, max_length=100)
    delay_seconds: float = Field(0, ge=0, le=366 * 86400)
    unique: str = Field("", max_length=300, description="while a job with this key has not ended, no other is queued")
    keep_seconds: float = Field(0, ge=0, le=30 * 86400, description="how long state and result can be read afterwards")
    progress: bool = Field(False, description="whether it can be watched from the start")


class Queued(BaseModel):
    """A job that is queued now, or was already under its unique key."""

    uid: str
    queue: str
    is_new: bool
    ticket: str | None = Field(description="lets whoever holds it watch the job for half an hour")


class Shown(BaseModel):
    """Queues, workers and totals at one moment."""

    at: float
    queues: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    totals: dict[str, Any]


class Listed(Paged):
    """Some jobs of one place."""

    items: list[dict[str, Any]]
    total: int = Field(description="how many lie there")


class Found(BaseModel):
    """One job: its state if that is kept, and where it lies; if neither is known, how it ended lately."""

    uid: str
    queue: str
    state: dict[str, Any] | None
    job: dict[str, Any] | None
    searched_all: bool = Field(description="false when a queue was too long to be searched whole")
    ended: EndedShown | None = Field(None, description="only for one that ended, of which no state is kept")


class Groups(BaseModel):
    """Dead letters by what their errors begin with, most frequent first."""

    groups: list[dict[str, Any]]


class Chosen(BaseModel):
    """Which dead letters: by uid, by error, or all."""

    queue: str = Field(HOT, max_length=100)
    uids: list[str] = Field(default_factory=list, max_length=1000)
    error: str = Field("", max_length=1000)
    all: bool = False


class Count(BaseModel):
    """How many it concerned."""

    count: int


class Changed(BaseModel):
    """Whether anything changed."""

    changed: bool


def routes(valkey: Valkey, clock: Clock, tickets: Tickets) -> APIRouter:
    """Under the prefix of the HTTP interface."""
    router = APIRouter(tags=["jobs"])
    inspection, client = Inspection(valkey, clock), Jobs(valkey, clock=clock)

    @router.get("/jobs/overview")
    async def overview(request: Request) -> Shown:
        """Every queue with its counts, every worker, and how many jobs ended how."""
        _caller(request).require(SCOPE)
        return Shown.model_validate((await inspection.snapshot()).as_dict())

    @router.get("/jobs")
    async def list_jobs(
        request: Request, place: Place = "queued", queue: QueueName = HOT,
        limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
    ) -> Listed:
        """Jobs that lie in one place of a queue, in the order in which they will be served; dead ones newest first.

        Pages go by number, and jobs move on meanwhile: one may come twice, or be passed over.
        """
        _caller(request).require(SCOPE)
        first = PageRequest(limit, cursor).position(PositionNumber) or 0
        page = await inspection.jobs(place, queue, first=first, most=limit)
        return Listed(items=[job.as_dict() for job in page.jobs], total=page.total,
                      next_cursor=cursor_after(first, len(page.jobs), page.total))

    @router.post("/jobs", status_code=202)
    async def enqueue(request: Request, wanted: Wanted) -> Queued:
        """Queue a job by its name. A name that no worker knows becomes a dead letter that says so."""
        _caller(request).require(SCOPE)
        wishes: Wishes = {
            "queue": queue_named(wanted.queue).name, "delay_seconds": wanted.delay_seconds, "unique": wanted.unique,
            "keep_seconds": wanted.keep_seconds, "progress": wanted.progress,
        }
        handle = await client.options(**wishes).enqueue(wanted.name, **wanted.kwargs)
        ticket = tickets.issue(WATCH_PURPOSE, handle.uid, lasts_seconds=WATCH_SECONDS) if wanted.progress else None
        return Queued(uid=handle.uid, queue=wanted.queue, is_new=handle.is_new, ticket=ticket)

    @router.get("/jobs/errors")
    async def errors(request: Request, queue: QueueName = HOT) -> Groups:
        """Dead letters of a queue, by error."""
        _caller(request).require(SCOPE)
        found = await inspection.dead_letters(queue).groups()
        return Groups(groups=[group.as_dict() for group in found])

    @router.post("/jobs/retry")
    async def retry(request: Request, chosen: Chosen) -> Count:
        """Queue dead letters again, with all their tries."""
        _caller(request).require(SCOPE)
        return Count(count=await inspection.dead_letters(chosen.queue).retry(_choice(chosen)))

    @router.post("/jobs/drop")
    async def drop(request: Request, chosen: Chosen) -> Count:
        """Forget dead letters for good."""
        _caller(request).require(SCOPE)
        return Count(count=await inspection.dead_letters(chosen.queue).drop(_choice(chosen)))

    @router.post("/jobs/queues/{queue}/pause", status_code=204)
    async def pause(request: Request, queue: Annotated[str, Path(max_length=100)]) -> None:
        """Let nobody take jobs of this queue; those that run are not touched."""
        _caller(request).require(SCOPE)
        await inspection.pause(queue)

    @router.post("/jobs/queues/{queue}/resume")
    async def resume(request: Request, queue: Annotated[str, Path(max_length=100)]) -> Changed:
        """Let jobs of this queue be taken again."""
        _caller(request).require(SCOPE)
        return Changed(changed=await inspection.resume(queue))

    @router.get("/jobs/{uid}")
    async def show(request: Request, uid: Uid) -> Found:
        """One job."""
        _caller(request).require(SCOPE)
        found = await inspection.find(uid)
        if found is None:
            raise NotFound(f"no job {uid} is known: it ended a while ago and was not kept, or never was")
        return Found(
            uid=uid, queue=found.queue, state=None if found.state is None else msgspec.to_builtins(found.state),
            job=None if found.view is None else found.view.as_dict(), searched_all=found.searched_all,
            ended=None if found.ended is None else shown(found.ended),
        )

    @router.post("/jobs/{uid}/cancel")
    async def cancel(request: Request, uid: Uid) -> Changed:
        """Ask that a job does not run, or stops."""
        _caller(request).require(SCOPE)
        return Changed(changed=await inspection.cancel(uid))

    @router.post("/jobs/{uid}/ticket")
    async def ticket(request: Request, uid: Uid) -> Queued:
        """A ticket that lets whoever holds it watch this job for half an hour."""
        _caller(request).require(SCOPE)
        text = tickets.issue(WATCH_PURPOSE, uid, lasts_seconds=WATCH_SECONDS)
        return Queued(uid=uid, queue=HOT, is_new=False, ticket=text)

    return router


def _choice(chosen: Chosen) -> Choice:
    if sum((bool(chosen.uids), bool(chosen.error), chosen.all)) != 1:
        raise Invalid("say which dead letters: uids, error or all, one of the three")
    return every if chosen.all else by_uid(chosen.uids) if chosen.uids else by_error(chosen.error)


def live_routes(valkey: Valkey, tickets: Tickets) -> APIRouter:
    """Watching: ``/jobs/live``, as a web socket or as server-sent events, for whoever has a ticket."""
    router = APIRouter(tags=["jobs"])

    @router.get(LIVE_PATH, response_class=StreamingResponse, responses={
        200: {"description": "Events until the job ends", "content": {"text/event-stream": {}}}, 404: {},
    })
    async def events(ticket: Annotated[str, Query(max_length=4096)]) -> StreamingResponse:
        """What a job tells, as server-sent events: each a JSON object with ``events`` and ``missed``."""
        uid = tickets.read(WATCH_PURPOSE, ticket).subject
        batches = watch(valkey, uid)
        first = await anext(batches, None)  # a job that is not known is a plain 404, before anything is sent
        return StreamingResponse(_lines(first, batches), media_type="text/event-stream")

    @router.websocket(LIVE_PATH)
    async def live(socket: WebSocket, ticket: str = "") -> None:
        await socket.accept()
        try:
            if not ticket:
                async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                    ticket = _ticket_in(await socket.receive_text())
            await _forward(socket, valkey, tickets.read(WATCH_PURPOSE, ticket).subject)
            code = NORMAL
        except TimeoutError:
            code = ERROR_BASE + 408
        except WebSocketDisconnect:
            return
        except KeysteadError as error:
            problem = problem_of(error)
            code = ERROR_BASE + problem.status
            with contextlib.suppress(Exception):
                await socket.send_text(json.dumps({"error": problem.body()}))
        with contextlib.suppress(Exception):  # whoever left needs no good-bye
            async with asyncio.timeout(CLOSE_SECONDS):
                await socket.close(code)

    return router


async def _forward(socket: WebSocket, valkey: Valkey, uid: str) -> None:
    """Send every batch; ends when the job does, when nothing comes any more, or when the other side has gone."""
    async with contextlib.aclosing(watch(valkey, uid)) as batches:
        gone = asyncio.ensure_future(_gone(socket))
        try:
            while True:
                following = asyncio.ensure_future(anext(batches, None))
                await asyncio.wait({gone, following}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
                    return
                batch = following.result()
                if batch is None:
                    return
                async with asyncio.timeout(SEND_SECONDS):
                    await socket.send_text(_text(batch))
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)


async def _gone(socket: WebSocket) -> None:
    """Ends when the other side does. What it says meanwhile is not for us."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await socket.receive_text()


async def _lines(first: ProgressBatch | None, rest: AsyncIterator[ProgressBatch]) -> AsyncIterator[str]:
    if first is not None:
        yield f"data: {_text(first)}\n\n"
    async for batch in rest:
        yield f"data: {_text(batch)}\n\n"


def _text(batch: ProgressBatch) -> str:
    return msgspec.json.encode({"events": batch.events, "missed": batch.missed}).decode()


def _ticket_in(text: str) -> str:
    try:
        found = msgspec.json.decode(text, type=dict[str, str]).get("ticket", "")
    except msgspec.DecodeError:
        found = ""
    if not found:
        raise Invalid('the first message must be {"ticket": "..."}, or give the ticket in the address')
    return found


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
