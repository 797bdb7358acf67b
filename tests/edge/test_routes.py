"""The block list over HTTP."""

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse

from keystead.edge import ANONYMOUS, Caller, CallerKind, problem_of
from keystead.edge.keys import EDGE
from keystead.edge.routes import routes
from keystead.errors import KeysteadError
from keystead.keys import Registry


@pytest.fixture
async def client(valkey):
    """The room's door with an operator before it; set ``client.caller`` to be someone else."""
    app = FastAPI()
    app.include_router(routes(valkey, Registry([EDGE], valkey.layout)))

    @app.middleware("http")
    async def put_caller(request: Request, call_next):
        request.state.caller = client.caller
        return await call_next(request)

    @app.exception_handler(KeysteadError)
    async def answer(_, error):
        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        client.caller = Caller(CallerKind.OPERATOR, "operator")
        yield client


async def test_pinned_block_is_listed_and_taken_away_again(client):
    assert (await client.post("/blocks", json={"address": "203.0.113.7", "lasts_seconds": 60})).status_code == 204
    listed = (await client.get("/blocks")).json()
    assert listed["next_cursor"] is None and [item["address"] for item in listed["items"]] == ["203.0.113.7"]
    assert (await client.delete("/blocks/203.0.113.7")).status_code == 204
    assert (await client.get("/blocks")).json()["items"] == []
    assert (await client.delete("/blocks/203.0.113.7")).status_code == 404


async def test_address_with_colons_fits_into_the_path(client):
    await client.post("/blocks", json={"address": "2001:db8::1", "lasts_seconds": 60})
    assert (await client.delete("/blocks/2001:db8::1")).status_code == 204


async def test_cut_list_says_so(client):
    for last in range(3):
        await client.post("/blocks", json={"address": f"203.0.113.{last}", "lasts_seconds": 60})
    listed = (await client.get("/blocks", params={"limit": 2})).json()
    assert len(listed["items"]) == 2
    rest = (await client.get("/blocks", params={"limit": 500, "cursor": listed["next_cursor"]})).json()
    assert listed["items"][-1]["address"] < rest["items"][0]["address"] and rest["next_cursor"] is None


@pytest.mark.parametrize(("caller", "status"), [
    (ANONYMOUS, 401), (Caller(CallerKind.PROGRAM, "prometheus", frozenset({"metrics"})), 403),
])
async def test_others_may_not_look_or_touch(client, caller, status, valkey):
    client.caller = caller
    assert (await client.get("/blocks")).status_code == status
    assert (await client.post("/blocks", json={"address": "203.0.113.7", "lasts_seconds": 9})).status_code == status
    assert (await client.delete("/blocks/203.0.113.7")).status_code == status
    assert await valkey.dbsize() == 0


async def test_bad_address_is_refused(client):
    answer = await client.post("/blocks", json={"address": "somewhere", "lasts_seconds": 60})
    assert answer.status_code == 400 and answer.json()["type"] == "invalid"
