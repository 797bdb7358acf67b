"""Requests are spans while somebody listens, and the door is as before while nobody does."""

import httpx
import pytest

from keystead.web.server import build
from keystead.web.traced import TracedRequests

from ..tracing_at_hand import Listener
from .conftest import PORT

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def listener():
    with Listener() as found:
        yield found


async def ask(running, path, **headers):
    app = build(running, port=PORT)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 4711), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
        return await client.get(path, headers=headers)


async def test_a_request_goes_on_with_the_trace_of_its_caller(running, listener):
    await ask(running, "/api/1/jobs/ann@example.com", traceparent=PARENT)
    [found] = [one for one in listener.spans if one.kind.name == "SERVER"]
    assert found.name == "GET (none)", "it was refused before a route was found"
    assert f"{found.context.trace_id:032x}" == PARENT.split("-")[1]
    assert found.attributes["keystead.status"] == 401
    assert "ann@" not in found.to_json()


async def test_a_request_without_one_begins_a_trace(running, listener):
    await ask(running, "/health")
    [found] = [one for one in listener.spans if one.kind.name == "SERVER"]
    assert found.name == "GET /health" and found.parent is None and found.status.is_ok


async def test_while_nobody_listens_there_is_no_such_layer(running):
    app = build(running, port=PORT)
    assert TracedRequests not in [layer.cls for layer in app.user_middleware]
