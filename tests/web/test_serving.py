"""Serving in this process until told to stop."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest
from websockets.asyncio.client import connect as open_websocket

from keystead.app import App
from keystead.errors import Conflict, Invalid, Unavailable
from keystead.settings import load_settings
from keystead.web import login_link
from keystead.web import serving as web_serving
from keystead.web.callers import OPERATOR, SESSION_PURPOSE, cookie_name
from keystead.web.serving import serve


def installation(tmp_path, **flags):
    given = {"valkey.url": f"embedded://{tmp_path / 'data'}", "http.port": 0}
    return App(load_settings({**given, **flags}, environment={}))


async def serving(app, work, seconds=60):
    """Run ``work(ready)`` while the server runs."""
    stop = asyncio.Event()
    ready: asyncio.Future = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(app, dashboard=False, on_ready=ready.set_result, stop=stop))
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            await work(ready.result())
    finally:
        stop.set()
        await task


async def test_free_port_is_picked_and_told(tmp_path):
    app = installation(tmp_path)

    async def work(ready):
        async with httpx.AsyncClient(timeout=60, base_url=ready.url) as client:
            assert (await client.get("/health")).json()["status"] == "ok"
            assert ready.login_url.startswith(f"{ready.url}/login?ticket=")
            assert (await client.get(ready.login_url)).status_code == 200
        assert login_link(app).startswith(ready.url)

    await serving(app, work)
    with pytest.raises(Unavailable):
        login_link(app)


async def test_stop_is_heard_at_once_however_seldom_the_server_looks(tmp_path, monkeypatch):
    monkeypatch.setattr(web_serving, "DATE_SECONDS", 3600.0)

    async def work(ready):
        async with httpx.AsyncClient(timeout=60, base_url=ready.url) as client:
            assert (await client.get("/health")).headers["date"].endswith("GMT")

    await asyncio.wait_for(serving(installation(tmp_path), work), 300)


async def test_taken_port_is_one_line_with_the_mend_and_starts_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Invalid, match=rf"port {port} is taken .* --port") as refusal:
            await serve(installation(tmp_path, **{"http.port": port}), dashboard=False)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("flags", "says"), [
    ({"http.port": 70000}, "no port 70000"), ({"http.host": "203.0.113.7"}, "http.host"),
])
async def test_impossible_addresses_are_refused(tmp_path, flags, says):
    with pytest.raises(Invalid, match=says):
        await serve(installation(tmp_path, **flags), dashboard=False)


async def test_second_owner_of_the_data_is_refused(tmp_path):
    async def work(_):
        with pytest.raises(Conflict):
            await serve(installation(tmp_path), dashboard=False)

    await serving(installation(tmp_path), work)


PROGRAM = """
import asyncio, sys
from keystead.app import App
from keystead.settings import load_settings
from keystead.web import serve

app = App(load_settings({"valkey.url": "embedded://" + sys.argv[1], "http.port": 0}, environment={}))
asyncio.run(serve(app, dashboard="dashboard" in sys.argv, on_ready=lambda ready: print(ready.url, flush=True)))
"""


@contextmanager
def process_of(directory, *words):
    """A server in a process of its own, and its address."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(directory), *words], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


async def test_open_page_does_not_hold_the_stop_up(tmp_path):
    directory = tmp_path / "data"
    with process_of(directory, "dashboard") as (process, url):
        tickets = App(load_settings({"valkey.url": f"embedded://{directory}"}, environment={})).tickets()
        session = tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=60)
        async with open_websocket(
            url.replace("http", "ws") + "/_nicegui_ws/socket.io/?EIO=4&transport=websocket", origin=url,
            open_timeout=60, additional_headers={"Cookie": f"{cookie_name(httpx.URL(url).port)}={session}"},
        ) as websocket:
            await websocket.recv()
            started = time.monotonic()
            process.terminate()
            assert await asyncio.to_thread(process.wait, 60) == 0
        assert time.monotonic() - started < 30


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_everything_soon_and_cleanly(tmp_path, number, times):
    with process_of(tmp_path / "data") as (process, url):
        server = json.loads((tmp_path / "data" / "server.json").read_text())
        with httpx.Client(timeout=60, base_url=url) as client:
            assert client.get("/health").status_code == 200
            started = time.monotonic()
            for _ in range(times):
                process.send_signal(number)
                time.sleep(0.2)
            assert process.wait(60) == 0
        assert time.monotonic() - started < 30
        assert process.stderr.read() == ""
        with pytest.raises(OSError):
            socket.socket(socket.AF_UNIX).connect(server["socket"])
