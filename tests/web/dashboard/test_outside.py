"""What is no page, and pages that fail."""

import subprocess
import sys

import httpx
import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from keystead.web.dashboard.outside import NotPages

REFUSALS = {404: "no such route", 405: "no such method"}

# The framework of the pages can be begun once in a process.
_PROGRAM = """
import asyncio, httpx
from fastapi import FastAPI
from nicegui import Client, ui
from keystead.web.dashboard.outside import refuse_plainly

app = FastAPI()

@ui.page("/broken")
def broken() -> None:
    raise RuntimeError("the password is hunter2")

async def main() -> None:
    ui.run_with(app, tailwind=False, show_welcome_message=False)
    refuse_plainly()
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://here") as ask:
        missing = await ask.get("/nothing?q=ada@example.com")
        assert missing.status_code == 404 and "does not exist" in missing.text, missing.text
        assert not Client.instances, "nothing is kept of it"
        failed = await ask.get("/broken")
        assert failed.status_code == 500 and "the log has the details" in failed.text, failed.text
        assert "hunter2" not in failed.text and "RuntimeError" not in failed.text

asyncio.run(main())
"""


@pytest.fixture
async def ask():
    app = FastAPI()

    @app.get("/api/1/things")
    async def things() -> str:
        return "things"

    async def refused(_, error):
        return PlainTextResponse(REFUSALS[error.status_code], error.status_code)

    app.add_exception_handler(HTTPException, refused)
    app.router.routes.append(NotPages(app.router))
    app.mount("/", PlainTextResponse("a page"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        yield client


async def test_the_interface_is_answered_as_if_there_were_no_pages(ask):
    assert (await ask.get("/api/1/things")).json() == "things"
    for path in ("/api/1/nothing", "/l/a/b", "/a/", "/health", "/sandbox/expo/x", "/api/1/emails/sns-mail"):
        answer = await ask.get(path)
        assert (answer.status_code, answer.text) == (404, REFUSALS[404]), path
    answer = await ask.delete("/api/1/things")
    assert (answer.status_code, answer.text) == (405, REFUSALS[405])
    for path in ("/", "/keys", "/sandbox", "/healthy", "/listen"):
        assert (await ask.get(path)).text == "a page"


async def test_on_the_real_server_strangers_get_no_page_at_all(site):
    async with httpx.AsyncClient(timeout=60, base_url=site.url) as stranger:
        for method, path, status in (("GET", "/l/a/b", 404), ("GET", "/api/3/templates/x/y", 404),
                                     ("POST", "/health", 405), ("GET", "/api/1/sms/webhook", 405)):
            answer = await stranger.request(method, path)
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), path


def test_pages_that_are_missing_or_fail_say_no_more_than_that():
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "ada@example.com" not in ran.stdout + ran.stderr, "no address is written down"
