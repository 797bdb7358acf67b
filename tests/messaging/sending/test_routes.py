"""The door for those who look after the rooms."""

import httpx
from fastapi import FastAPI, Request, Response

from keystead.edge import Caller, CallerKind
from keystead.edge.refusals import Forbidden
from keystead.engine import Valkey
from keystead.messaging.sending import OverviewReader
from keystead.messaging.sending.routes import admin_routes
from keystead.messaging.sms.overview import OVERVIEW
from keystead.testing.clock import MovableClock


async def test_the_scope_is_needed_and_answers_are_live(valkey: Valkey):
    app, scopes = FastAPI(), set()

    @app.middleware("http")
    async def known(request: Request, go_on):
        request.state.caller = Caller(CallerKind.PROGRAM, "test", frozenset(scopes))
        return await go_on(request)

    @app.exception_handler(Forbidden)
    async def forbidden(request: Request, error: Exception):
        return Response(status_code=403)

    app.include_router(admin_routes(OverviewReader(valkey, MovableClock(now=1.0)), [OVERVIEW]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
        assert (await client.get("/admin/sms/send_queue_info")).status_code == 403
        scopes.add("messaging")
        answer = await client.get("/admin/sms/send_queue_info")
        assert answer.json() == {"length": 0, "oldest_at": None}
        assert answer.headers["cache-control"] == "no-store"
        assert (await client.get("/admin/sms/nothing_of_the_kind")).status_code == 404
