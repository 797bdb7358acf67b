"""Serving in this process until told to stop."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from keystead.app import App
from keystead.errors import Conflict, Invalid, NotFound
from keystead.settings import load_settings
from keystead.web import login_link
from keystead.web.serving import serve


def installation(tmp_path, **flags):
    given = {"valkey.url": f"embedded://{tmp_path / 'data'}", "http.port": 0}
    return App(load_settings({**given, **flags}, environment={}))


async def serving(app, work):
    """Run ``work(ready)`` while the server runs."""
    stop = asyncio.Event()
    ready: asyncio.Future = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(app, dashboard=False, on_ready=ready.set_result, stop=stop))
    try:
        async with asyncio.timeout(20):
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
        async with httpx.AsyncClient(base_url=ready.url) as client:
            assert (await client.get("/health")).json()["status"] == "ok"
            assert ready.login_url.startswith(f"{ready.url}/login?ticket=")
            assert (await client.get(ready.login_url)).status_code == 200
        assert login_link(app).startswith(ready.url)

    await serving(app, work)
    with pytest.raises(NotFound):
        login_link(app)


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_everything_soon_and_cleanly(tmp_path, number):
    program = (
        "import asyncio, sys\n"
        "from keystead.app import App\nfrom keystead.settings import load_settings\nfrom keystead.web import serve\n"
        "app = App(load_settings({'valkey.url': 'embedded://' + sys.argv[1], 'http.port': 0}, environment={}))\n"
        "asyncio.run(serve(app, dashboard=False, on_ready=lambda ready: print(ready.url, flush=True)))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "data")], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        server = json.loads((tmp_path / "data" / "server.json").read_text())
        with httpx.Client(base_url=url) as client:
            assert client.get("/health").status_code == 200
            started = time.monotonic()
            process.send_signal(number)
            assert process.wait(10) == 0
        assert time.monotonic() - started < 4
        assert process.stderr.read() == ""
        with pytest.raises(OSError):
            socket.socket(socket.AF_UNIX).connect(server["socket"])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
