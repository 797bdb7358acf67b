"""The assembled server."""

import asyncio
import subprocess
import sys

import pytest
from fastapi import Request

from keystead.errors import Corrupt, Unavailable
from keystead.web.server import _keep_going


@pytest.mark.parametrize(("error", "status", "type"), [
    (ValueError("secret of a person"), 500, "internal"),
    (Corrupt("secret of a person"), 500, "corrupt"),
    (Unavailable("the server is away"), 503, "unavailable"),
])
async def test_whatever_goes_wrong_has_the_one_error_body(app, operator, error, status, type):
    @app.get("/broken")
    async def broken(request: Request):
        raise error

    answer = await operator.get("/broken")
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == type and "secret" not in answer.text
    assert answer.headers["x-request-id"]


async def test_unknown_path_and_method_have_it_too(operator):
    assert (await operator.get("/nothing")).json()["type"] == "not_found"
    answer = await operator.post("/api/1/keys", headers={"Origin": "http://127.0.0.1:8400"})
    assert answer.status_code == 405 and answer.json()["type"] == "method_not_allowed"


async def test_without_a_dashboard_the_first_page_is_the_documentation(operator):
    answer = await operator.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs")


async def test_background_work_is_taken_up_again(monkeypatch):
    monkeypatch.setattr("keystead.web.server.AGAIN_SECONDS", 0.0)
    tries = asyncio.Event()
    count = 0

    async def fails():
        nonlocal count
        count += 1
        if count == 3:
            tries.set()
        raise ValueError("broken")

    task = asyncio.ensure_future(_keep_going(fails))
    async with asyncio.timeout(30):
        await tries.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_server_without_a_dashboard_does_not_load_it():
    program = "import sys, keystead.web, keystead.web.server; sys.exit('nicegui' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
