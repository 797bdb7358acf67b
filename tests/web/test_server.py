"""The assembled server."""

import asyncio
import subprocess
import sys

import pytest
from fastapi import Request

from keystead.errors import Corrupt, Unavailable
from keystead.store.uploads_plan import UploadPurpose
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
    assert answer.headers["allow"] == "GET"


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


async def test_statistics_are_answered_to_whoever_has_the_scope(program, operator):
    answer = await program("stats").get("/api/1/stats")
    assert answer.status_code == 200 and "sms_events" in answer.text
    assert (await program("keys").get("/api/1/stats")).status_code == 403
    assert (await operator.get("/api/1/stats/sms_events?days=7")).status_code == 200


async def test_a_part_of_an_upload_needs_its_ticket_and_no_log_in(running, visitor):
    async def done(upload_uid: str) -> None: ...

    running.book.register("files.done", done)
    purpose = UploadPurpose("letters", 100, success="files.done", failure="files.done")
    upload = await running.uploads.start(purpose, 5)
    address, stranger = f"/api/1/file_uploads/{upload.uid}/1", visitor()
    assert (await stranger.post(address, content=b"hello")).status_code == 401
    assert (await stranger.post(f"{address}?ticket=forged", content=b"hello")).status_code in (401, 403)
    answer = await stranger.post(address, content=b"hello", headers={"Authorization": f"Bearer {upload.ticket}"})
    assert (answer.status_code, answer.json()) == (202, {"done": True})
    again = await stranger.post(f"{address}?ticket={upload.ticket}", content=b"hello")
    assert (again.status_code, again.json()["type"]) == (404, "upload_aborted_or_completed")
