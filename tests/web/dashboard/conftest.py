"""A whole installation in a process of its own, and a real browser that looks at it."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from keystead.app import App
from keystead.engine import connect
from keystead.settings import load_settings
from keystead.web import login_link

from ...browser import FLAGS, MISSING, find_browser

_PROGRAM = """
import asyncio, sys
from keystead.app import App
from keystead.settings import load_settings
from keystead.web import serve

app = App(load_settings({"valkey.url": "embedded://" + sys.argv[1], "http.port": 0}, environment={}))
asyncio.run(serve(app, on_ready=lambda ready: print(ready.url, flush=True)))
"""


@dataclass(frozen=True)
class Site:
    """Where the installation is, and how to get in."""

    url: str
    directory: Path

    @property
    def valkey_url(self) -> str:
        return f"embedded://{self.directory}"

    @property
    def valkey_pid(self) -> int:
        return json.loads((self.directory / "server.json").read_text())["pid"]

    def link(self) -> str:
        return login_link(App(load_settings({"valkey.url": self.valkey_url}, environment={})))


@pytest.fixture(scope="session")
def running_site(tmp_path_factory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site") / "data"
    log = directory.with_name("log")
    with log.open("w") as errors:
        process = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(directory)], stdout=subprocess.PIPE,
                                   stderr=errors, text=True)
        try:
            url = process.stdout.readline().strip()
            assert url, log.read_text()
            yield Site(url, directory)
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
    assert "Traceback" not in log.read_text()


@pytest.fixture
async def site(running_site) -> Site:
    """The installation, with nothing in its server."""
    valkey = await connect(running_site.valkey_url)
    await valkey.flushall()
    await valkey.aclose()
    return running_site


@pytest.fixture
async def store(site) -> AsyncIterator:
    """The installation's own server."""
    valkey = await connect(site.valkey_url)
    yield valkey
    await valkey.aclose()


@pytest.fixture
async def stranger(site) -> AsyncIterator:
    """A browser page that is not logged in. Fails the test if a page loads anything foreign or breaks."""
    program = find_browser()
    if program is None:
        pytest.skip(MISSING)
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=60_000)
    wrong: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=[flag for flag in FLAGS if flag != "--headless"]
        )
        context = await browser.new_context(viewport={"width": 1280, "height": 900}, base_url=site.url)
        context.set_default_timeout(60_000)
        context.on("request", lambda request: _note_foreign(request.url, site.url, wrong))
        context.on("weberror", lambda error: wrong.append(f"page error: {error.error}"))
        yield await context.new_page()
        await context.close()
        await browser.close()
    assert not wrong


def _note_foreign(url: str, ours: str, wrong: list[str]) -> None:
    if not url.startswith((ours, ours.replace("http", "ws", 1), "data:", "blob:")):
        wrong.append(f"foreign request: {url}")


@pytest.fixture
async def page(site, stranger):
    """A browser page of someone who logged in through the link, on the overview."""
    await stranger.goto(site.link())
    await stranger.wait_for_selector(".ks-tiles")
    return stranger
