"""``/health``, ``/ready`` and ``/metrics``."""

import asyncio

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from keystead.app import Running
from keystead.edge import Caller
from keystead.errors import Unavailable
from keystead.telemetry import Durations, counts
from keystead.web.facts import ServerFacts, read_facts
from keystead.web.metrics import MEDIA_TYPE, metrics_text
from keystead.web.metrics_rooms import room_samples
from keystead.web.readiness import Readiness

ANSWER_SECONDS = 1.0


class Health(BaseModel):
    """Whether the installation works."""

    status: str = Field(description="ok, loading (the server reads its data) or unavailable")
    server: str | None = Field(description="product and version of the server")
    role: str | None
    uptime_seconds: int | None = Field(description="since the server started")


class CheckShown(BaseModel):
    """One part that this process needs."""

    name: str = Field(examples=["sql"])
    ok: bool
    says: str = Field(description="what is wrong, in a few words", examples=[""])


class Ready(BaseModel):
    """Whether this process can do its work now."""

    ready: bool
    checks: list[CheckShown]


def routes(running: Running) -> APIRouter:
    router = APIRouter(tags=["status"])

    async def look() -> ServerFacts | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await read_facts(running.valkey)
        except (Unavailable, TimeoutError):
            return None

    @router.get("/health", responses={503: {"model": Health}})
    async def health(response: Response) -> Health:
        """Whether the server answers. Needs no credential; 503 while it does not."""
        facts = await look()
        response.headers["Cache-Control"] = "no-store"
        if facts is None:
            response.status_code = 503
            return Health(status="unavailable", server=None, role=None, uptime_seconds=None)
        if facts.loading:
            response.status_code = 503
        return Health(
            status="loading" if facts.loading else "ok", server=f"{facts.product} {facts.version}", role=facts.role,
            uptime_seconds=facts.uptime_seconds,
        )

    readiness = Readiness(running)

    @router.get("/ready", responses={503: {"model": Ready, "description": "Something is missing; the body says what"}})
    async def ready(response: Response) -> Ready:
        """Whether this process can do its work: server, database, tables and, where it works, its worker.

        Needs no credential; 503 while something is missing. Looked at once a second at most.
        """
        response.headers["Cache-Control"] = "no-store"
        found = await readiness.checks()
        is_ready = all(check.ok for check in found)
        if not is_ready:
            response.status_code = 503
        return Ready(ready=is_ready, checks=[
            CheckShown(name=check.name, ok=check.ok, says=check.says) for check in found
        ])

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics(request: Request) -> Response:
        """Counts and gauges in the text format of Prometheus. Needs the scope ``metrics``."""
        caller: Caller = request.state.caller
        caller.require("metrics")
        facts = await look()
        rooms = await room_samples(running) if facts is not None else ()
        return Response(metrics_text(counts, facts, rooms=rooms, durations=Durations.all), media_type=MEDIA_TYPE)

    return router
