"""A room's HTTP door with somebody before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse

from keystead.edge import Caller, CallerKind, problem_of
from keystead.errors import KeysteadError


@dataclass
class Visit:
    """Asks as ``caller``."""

    http: httpx.AsyncClient
    caller: Caller

    def being(self, sub: str) -> None:
        self.caller = Caller(CallerKind.USER, sub)

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        answer = await self.http.request(method, path, json=body)
        return answer.status_code, answer.json() if answer.content else None


@asynccontextmanager
async def visiting(router: APIRouter) -> AsyncIterator[Visit]:
    app = FastAPI()
    app.include_router(router)

    @app.middleware("http")
    async def put_caller(request: Request, call_next):  # type: ignore[no-untyped-def]
        request.state.caller = visit.caller
        return await call_next(request)

    @app.exception_handler(KeysteadError)
    async def answer(_: Request, error: KeysteadError) -> JSONResponse:
        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as http:
        visit = Visit(http, Caller(CallerKind.OPERATOR, "operator"))
        yield visit
