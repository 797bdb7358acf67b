"""Alerts over HTTP: seen, acknowledged, tested; by whoever may."""

import httpx
import pytest
from fastapi import FastAPI, Request

from keystead.clock import SystemClock
from keystead.edge import ANONYMOUS, Caller, CallerKind, problem_of
from keystead.errors import KeysteadError
from keystead.operations import AlertRules, Alerts
from keystead.operations.keys import DELIVERIES
from keystead.operations.routes import routes


@pytest.fixture
def alerts(valkey) -> Alerts:
    return Alerts(valkey, SystemClock(), AlertRules(3600.0, ("log",)))


def client(alerts: Alerts, caller: Caller) -> httpx.AsyncClient:
    app = FastAPI()

    @app.middleware("http")
    async def known(request: Request, call_next):
        request.state.caller = caller
        return await call_next(request)

    @app.exception_handler(KeysteadError)
    async def refused(request: Request, error: KeysteadError):
        from fastapi.responses import JSONResponse

        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status)

    app.include_router(routes(alerts))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


ADA = Caller(CallerKind.PROGRAM, "ada", frozenset({"alerts"}))


async def test_open_alerts_and_changes_are_listed(alerts):
    await alerts.raise_("queue_stuck", "jobs hot", "12 wait", "critical")
    await alerts.raise_("sql_away", "database", "away")
    await alerts.clear("sql_away", "database")
    async with client(alerts, ADA) as http:
        body = (await http.get("/alerts")).json()
    [found] = body["open"]
    assert (found["kind"], found["subject"], found["says"], found["severity"], found["told"]) == (
        "queue_stuck", "jobs hot", "12 wait", "critical", 1)
    assert found["acked_at"] is None and found["told_at"] == found["opened_at"]
    assert [event["event"] for event in body["recent"]] == ["cleared", "opened", "opened"]


async def test_an_alert_is_acknowledged_by_name(alerts):
    await alerts.raise_("queue_stuck", "jobs hot", "12 wait")
    async with client(alerts, ADA) as http:
        answer = await http.post("/alerts/ack", json={"kind": "queue_stuck", "subject": "jobs hot"})
        assert answer.status_code == 200 and answer.json()["acked_by"] == "ada"
        missing = await http.post("/alerts/ack", json={"kind": "queue_stuck", "subject": "another"})
        assert missing.status_code == 404
        wrong = await http.post("/alerts/ack", json={"kind": "", "subject": "x"})
        assert wrong.status_code == 422


async def test_a_test_is_queued_for_every_way(alerts, valkey):
    async with client(alerts, ADA) as http:
        answer = await http.post("/alerts/test")
    assert answer.status_code == 202 and answer.json()["event"] == "test"
    assert await DELIVERIES.size(valkey) == 1


@pytest.mark.parametrize(("caller", "status"), [
    (ANONYMOUS, 401), (Caller(CallerKind.PROGRAM, "shop", frozenset({"jobs"})), 403),
])
async def test_nobody_else_may(alerts, caller, status):
    async with client(alerts, caller) as http:
        for method, path in (("GET", "/alerts"), ("POST", "/alerts/test")):
            assert (await http.request(method, path)).status_code == status
        answer = await http.post("/alerts/ack", json={"kind": "a", "subject": "b"})
        assert answer.status_code == status
