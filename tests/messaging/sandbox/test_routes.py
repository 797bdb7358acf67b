"""The sandbox within a server that others reach too."""

from ipaddress import ip_address

import httpx
import pytest
from fastapi import FastAPI

from keystead.edge import Caller, CallerKind, ClientAddress
from keystead.messaging.sandbox.routes import PROVIDER_PREFIXES, routes

from .conftest import BASIC, MESSAGES

HERE = ClientAddress("127.0.0.1", ip_address("127.0.0.1"))
ELSEWHERE = ClientAddress("203.0.113.7", ip_address("203.0.113.7"))
OPERATOR, NOBODY = Caller(CallerKind.OPERATOR, "o"), Caller(CallerKind.ANONYMOUS)
FORM = {"To": "+15550001", "Body": "x", "From": "+1"}


@pytest.fixture
def at(sandbox):
    """``at(address=..., caller=...)``: a client of whom the door found out so much."""
    app = FastAPI()
    app.include_router(routes(sandbox))

    @app.get("/sandbox")
    async def page() -> str:
        return "the page"

    def make(**state):
        async def behind_the_door(scope, receive, send):
            scope["state"] = state
            await app(scope, receive, send)

        return httpx.AsyncClient(transport=httpx.ASGITransport(behind_the_door), base_url="http://127.0.0.1")

    return make


async def test_it_is_served_under_its_prefix_beside_other_routes(at):
    async with at(address=HERE, caller=OPERATOR) as http:
        assert (await http.get("/sandbox")).json() == "the page"
        answer = await http.post("/sandbox" + MESSAGES, headers=BASIC, data=FORM)
        assert (answer.status_code, answer.json()["to"]) == (201, "+15550001")
        assert (await http.delete("/sandbox/faults")).status_code == 200
        assert list((await http.get("/openapi.json")).json()["paths"]) == ["/sandbox"]


@pytest.mark.parametrize("state", [{}, {"address": ELSEWHERE, "caller": OPERATOR},
                                   {"address": ClientAddress("unknown", None), "caller": OPERATOR}])
async def test_providers_answer_only_this_machine(at, sandbox, state):
    async with at(**state) as http:
        for prefix in PROVIDER_PREFIXES:
            assert (await http.get(prefix + "x")).status_code == 403
        assert (await http.post("/sandbox" + MESSAGES, headers=BASIC, data=FORM)).status_code == 403
    assert await sandbox.outbox.counts() == {}


@pytest.mark.parametrize("caller", [None, NOBODY, Caller(CallerKind.PROGRAM, "p", frozenset({"stats"})),
                                    Caller(CallerKind.USER, "u")])
async def test_what_the_sandbox_holds_is_for_those_who_may(at, caller):
    async with at(address=HERE, caller=caller) as http:
        for path in ("faults", "outbox", "counts", "", "%2e%2e/x"):
            assert (await http.get(f"/sandbox/{path}")).status_code in (403, 404)
        assert (await http.post("/sandbox/faults", json={})).status_code == 403
        assert (await http.post("/sandbox" + MESSAGES, headers=BASIC, data=FORM)).status_code == 201
    async with at(address=ELSEWHERE, caller=Caller(CallerKind.PROGRAM, "p", frozenset({"messaging"}))) as http:
        assert (await http.get("/sandbox/counts")).status_code == 200
