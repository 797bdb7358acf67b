"""Assembling the HTTP server. The dashboard, which is heavy, is imported only when it is served."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from keystead.app import Running
from keystead.clock import real
from keystead.edge import PROBLEM_MEDIA_TYPE, Networks, Problem, Repeats, problem_of, problem_of_status
from keystead.edge.routes import routes as edge_routes
from keystead.errors import KeysteadError
from keystead.jobs import FairJobs, Inspection, Jobs, Tenants
from keystead.jobs.routes import live_routes as job_live_routes
from keystead.jobs.routes import routes as job_routes
from keystead.jobs.routes_ended import routes as ended_routes
from keystead.jobs.routes_tenants import routes as tenant_routes
from keystead.operations.routes import routes as alert_routes
from keystead.operations.routes_keys import routes as admin_key_routes
from keystead.stats.routes import routes as stats_routes
from keystead.store.routes import routes as store_routes
from keystead.telemetry import logger
from keystead.tracing import is_listening
from keystead.web import api, docs, login, openapi, people, status
from keystead.web.callers import cookie_name
from keystead.web.door import Door
from keystead.web.housekeeping import Housekeeping
from keystead.web.names import HostNames
from keystead.web.repeating import Repeating
from keystead.web.sampler import Sampler
from keystead.web.signpost import Assembled
from keystead.web.traced import TracedRequests

_log = logger("web")

API_PREFIX = "/api/1"
AGAIN_SECONDS = 5.0

Work = Callable[[], Awaitable[None]]


def build(running: Running, *, port: int, dashboard: bool = False) -> FastAPI:
    """The whole HTTP server over running services. ``port`` is the one it will be reached at."""
    sampler = Sampler(running.valkey, real(running.clock))
    census = running.alerting.census
    watching: list[Work] = [Housekeeping(running).run, running.admin_keys.run, running.endings.run]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(_keep_going(each)) for each in (sampler.run, census.run, *watching)]
            yield
            for task in work:
                task.cancel()

    app = Assembled(
        title="Keystead", version=version("keystead"), lifespan=lifespan, docs_url=None, redoc_url=None,
        description="The declared keys of a live server. Send a bearer token, or log in to the dashboard first.",
    )
    cookie = cookie_name(port)
    app.include_router(status.routes(running))
    app.include_router(login.routes(running, cookie))
    app.include_router(docs.routes(app))
    app.include_router(api.routes(running, census), prefix=API_PREFIX)
    app.include_router(edge_routes(running.valkey, running.registry), prefix=API_PREFIX)
    # Before the jobs by uid: the name of this list is not one.
    app.include_router(ended_routes(Inspection(running.valkey, running.clock)), prefix=API_PREFIX)
    app.include_router(job_routes(running.valkey, running.clock, running.tickets), prefix=API_PREFIX)
    app.include_router(
        tenant_routes(Tenants(running.valkey, running.clock), FairJobs(Jobs(running.valkey, clock=running.clock))),
        prefix=API_PREFIX,
    )
    app.include_router(stats_routes(running.charts, running.clock), prefix=API_PREFIX)
    app.include_router(alert_routes(running.alerts), prefix=API_PREFIX)
    app.include_router(admin_key_routes(running.admin_keys, real(running.clock)), prefix=API_PREFIX)
    app.include_router(store_routes(running.uploads), prefix=API_PREFIX)
    app.include_router(job_live_routes(running.valkey, running.tickets))
    people.include(app, running, API_PREFIX)
    _answer_errors(app)
    openapi.complete(app)
    http = running.settings.http
    # Behind the door, which is added after it.
    app.add_middleware(Repeating, repeats=Repeats(running.valkey, running.tickets))
    app.add_middleware(
        Door,
        guard=running.guard,
        tickets=running.tickets,
        clock=real(running.clock),
        names=HostNames([http.host, *http.host_names.split(",")]),
        trusted_proxies=Networks.parse(http.trusted_proxies, setting="http.trusted_proxies"),
        cookie_name=cookie,
        keys=running.admin_keys,
    )
    if is_listening():
        app.add_middleware(TracedRequests)
    if not dashboard:
        app.add_api_route("/", _lead_to_docs, include_in_schema=False)
    else:
        from keystead.web.dashboard import mount

        watching += mount(app, running, sampler, census)
    return app


async def _lead_to_docs() -> Response:
    return RedirectResponse("/docs", 303)


async def _keep_going(work: Work) -> None:
    """What watches the server in the background must not take the HTTP server down with it."""
    while True:
        try:
            await work()
        except Exception as error:
            _log.error("background work failed, trying again", work=work.__qualname__, exc_info=error)
            await asyncio.sleep(AGAIN_SECONDS)


def _answer_errors(app: FastAPI) -> None:
    """Whatever a route refuses, and whatever the framework does by itself, has the one error body.

    What nobody expected reaches the door, which answers it.
    """

    async def refused(_: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem.status >= 500:
            _log.error("request failed", type=problem.type, error=str(error))
        return _answer(problem)

    async def framework(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        # A refusal raised while the framework read the body arrives wrapped.
        if isinstance(error.__cause__, KeysteadError):
            return _answer(problem_of(error.__cause__))
        answer = _answer(problem_of_status(error.status_code, error.detail if error.status_code != 404 else ""))
        answer.headers.update(error.headers or {})  # which methods there are, of one that is not
        return answer

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return _answer(problem_of_status(422, f"{where}: {first['msg'].lower()}"))

    app.add_exception_handler(KeysteadError, refused)
    app.add_exception_handler(HTTPException, framework)
    app.add_exception_handler(RequestValidationError, invalid)


def _answer(problem: Problem) -> Response:
    return Response(json.dumps(problem.body()), problem.status, problem.headers, PROBLEM_MEDIA_TYPE)
