"""A whole installation in a process of its own, and a real browser that looks at it.

Both are started once, which is dear, and are empty when a test begins: nothing in the server, no cookie and nothing
stored in the browser, only one page. What the browser keeps is its cache of files that do not change.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from keystead.app import App
from keystead.engine import connect
from keystead.settings import load_settings
from keystead.web import login_link
from keystead.web.callers import OPERATOR, SESSION_PURPOSE, cookie_name

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

    @property
    def app(self) -> App:
        return App(load_settings({"valkey.url": self.valkey_url}, environment={}))

    def link(self) -> str:
        return login_link(self.app)

    def session_cookie(self) -> dict[str, str]:
        """What someone has who logged in."""
        session = self.app.tickets().issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=600)
        return {"name": cookie_name(urlsplit(self.url).port), "value": session, "url": self.url}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of the one site run in one process, and in one event loop, for a browser lives in the loop it began in.

    An asynchronous fixture of such a test must name that loop: ``@pytest_asyncio.fixture(loop_scope="session")``.
    """
    for item in items:
        if "running_site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("site"))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="package")
def running_site(tmp_path_factory) -> Iterator[Site]:
    with started_site(tmp_path_factory.mktemp("site") / "data") as site:
        yield site


@contextmanager
def started_site(directory: Path) -> Iterator[Site]:
    """A site of one's own, for who needs one that nobody has used yet."""
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


@pytest_asyncio.fixture(loop_scope="session")
async def site(running_site) -> Site:
    """The installation, with nothing in its server."""
    valkey = await connect(running_site.valkey_url)
    await valkey.flushall()
    await valkey.aclose()
    return running_site


@pytest_asyncio.fixture(loop_scope="session")
async def store(site) -> AsyncIterator:
    """The installation's own server."""
    valkey = await connect(site.valkey_url)
    yield valkey
    await valkey.aclose()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def browser() -> AsyncIterator:
    program = find_browser()
    if program is None:
        pytest.skip(MISSING)
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=60_000)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=program, args=[flag for flag in FLAGS if flag != "--headless"]
        )
        yield started
        await started.close()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def window(browser, running_site) -> AsyncIterator:
    """Where pages are opened. A fresh one for each test would load and compile the same scripts again and again."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, base_url=running_site.url)
    context.set_default_timeout(60_000)
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(site, browser, window) -> AsyncIterator:
    """A browser page that is not logged in. Fails the test if a page loads anything foreign or breaks."""
    wrong: list[str] = []

    def note_foreign(request) -> None:
        if not request.url.startswith((site.url, site.url.replace("http", "ws", 1), "data:", "blob:")):
            wrong.append(f"foreign request: {request.url}")

    def note_error(error) -> None:
        wrong.append(f"page error: {error.error}")

    page = await window.new_page()
    await window.clear_cookies()
    devtools = await window.new_cdp_session(page)
    await devtools.send("Storage.clearDataForOrigin", {"origin": site.url, "storageTypes": "all"})
    await devtools.detach()
    window.on("request", note_foreign)
    window.on("weberror", note_error)
    yield page
    for opened in window.pages:
        await opened.close()
    for other in browser.contexts:
        if other is not window:
            await other.close()
    window.remove_listener("request", note_foreign)
    window.remove_listener("weberror", note_error)
    assert not wrong


@pytest_asyncio.fixture(loop_scope="session")
async def page(site, stranger):
    """A browser page of someone who logged in through the link, on the overview."""
    await stranger.goto(site.link())
    await stranger.wait_for_selector(".ks-tiles")
    return stranger


@pytest_asyncio.fixture(loop_scope="session")
async def tab(site, stranger):
    """An empty browser page of someone who is logged in. Saves opening the overview where a test looks elsewhere."""
    await stranger.context.add_cookies([site.session_cookie()])
    return stranger
