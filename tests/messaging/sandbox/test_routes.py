"""The sandbox within a server that has other things to do."""

import httpx
from fastapi import FastAPI

from keystead.messaging.sandbox.routes import routes

from .conftest import BASIC, MESSAGES


async def test_it_is_served_under_its_prefix_beside_other_routes(sandbox):
    app = FastAPI()
    app.include_router(routes(sandbox))

    @app.get("/sandbox")
    async def page() -> str:
        return "the page"

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        assert (await http.get("/sandbox")).json() == "the page"
        form = {"To": "+15550001", "Body": "x", "From": "+1"}
        answer = await http.post("/sandbox" + MESSAGES, headers=BASIC, data=form)
        assert (answer.status_code, answer.json()["to"]) == (201, "+15550001")
        assert (await http.delete("/sandbox/faults")).status_code == 200
        assert "/sandbox" not in str((await http.get("/openapi.json")).json()["paths"]).replace("'/sandbox'", "")
