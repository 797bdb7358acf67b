"""A restore in processes of its own: killed in the middle, begun again, and what comes back started as a user does."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress

import pytest

from keystead.errors import Conflict
from keystead.testing.server import LocalServer, free_ports

from ..backup.installations import app_at
from ..cli.command import environment, keystead

PATIENCE_SECONDS = 120.0
PERSON = {"provider": "shop", "provider_sub": "1", "given_name": "Ada", "timezone": "Europe/Berlin"}


@pytest.fixture
def archive(tmp_path):
    """An archive of an installation with a person and a key, and the key."""

    async def start() -> str:
        app = app_at(f"embedded://{tmp_path / 'data'}", tmp_path / "data")
        async with app.running(start_server=True) as running:
            async with running.valkey.pipeline(transaction=False) as pipeline:
                for number in range(3000):
                    pipeline.set(f"filling:{number}", "x" * 100)
                await pipeline.execute()
            key = (await running.admin_keys.create("shop", ("*",))).text
            await app.backup().take(tmp_path / "one.backup")
            return str(key)

    return tmp_path / "one.backup", asyncio.run(start())


@contextmanager
def up(*arguments, cwd, chosen=()):
    """``keystead up`` until the block ends; says where it answers. It must end well."""
    [port] = free_ports(1)
    with (cwd / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "keystead.cli", *chosen, "up", "--port", str(port), "--no-dashboard",
             *map(str, arguments)],
            cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                assert process.poll() is None and time.monotonic() < deadline, (cwd / "up.log").read_text()
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10).close()
                    break
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0, (cwd / "up.log").read_text()
            assert "Traceback" not in (cwd / "up.log").read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def call(url, key, method="GET", body=None):
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), {
        "Authorization": f"Bearer {key}", "Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, {}


def works(address, key):
    """A key from before lets in, a person comes, and a worker erases them."""
    status, told = call(f"{address}/api/1/users", key, "POST", PERSON)
    assert status in (200, 201), status
    one = f"{address}/api/1/users/{told['sub']}"
    assert call(one, key)[0] == 200 and call(one, key, "DELETE")[0] == 202
    deadline = time.monotonic() + PATIENCE_SECONDS
    while call(one, key)[0] != 404:
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.slow
def test_a_restored_directory_is_started_and_works(archive, tmp_path):
    path, key = archive
    assert keystead("restore", path, "--data", "new", cwd=tmp_path).code == 0
    with up("--data", "new", cwd=tmp_path) as address:
        works(address, key)
    again = keystead("restore", path, "--data", "new", "--replace", "--format", "json", cwd=tmp_path)
    assert again.code == 0 and "new.replaced-" in json.loads(again.out)["warnings"][0], again
    with up("--data", "new", cwd=tmp_path) as address:
        works(address, key)


@pytest.mark.slow
def test_a_restore_to_a_server_and_postgresql_that_is_killed_refuses_to_start_until_it_is_done_again(
    archive, tmp_path, postgresql
):
    path, key = archive
    server = LocalServer()
    server.start()
    try:
        with postgresql.database() as url:
            chosen = ["--set", f"store.url={url}", "--set", "installation.directory=own"]
            where = ["--url", server.url]
            seen, more = None, []
            for milliseconds in (50, 0, 0, 0, 0, 0):  # until one is killed while it is at work
                process = subprocess.Popen(
                    [sys.executable, "-m", "keystead.cli", "restore", str(path), *where, *chosen, *more], cwd=tmp_path,
                    env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                )
                deadline = time.monotonic() + PATIENCE_SECONDS
                while process.poll() is None and not int(server.call("EXISTS", "backup:restoring")):
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                time.sleep(milliseconds / 1000)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and its scratch server
                _, told = process.communicate()
                assert b"keystead:" not in told, told
                if int(server.call("EXISTS", "backup:restoring")):
                    seen = int(server.call("DBSIZE"))
                    break
                server.call("FLUSHALL")  # it was faster: with its rows there it has to be told to replace
                more = ["--replace"]
            assert seen is not None and seen <= 3010

            started = keystead(*chosen, "up", "--no-dashboard", *where, cwd=tmp_path)
            assert "has not ended" in started.refused() and "--replace" in started.err
            assert "has not ended" in keystead("restore", path, *where, *chosen, cwd=tmp_path).refused()
            assert "has not ended" in keystead(*chosen, "backup", "two.backup", *where, cwd=tmp_path).refused()
            app = app_at(server.url, tmp_path / "own", url)

            async def start() -> None:
                async with app.running():
                    pass

            with pytest.raises(Conflict, match="has not ended"):
                asyncio.run(start())

            assert keystead("restore", path, "--replace", *where, *chosen, cwd=tmp_path).code == 0
            assert not int(server.call("EXISTS", "backup:restoring"))
            with up(*where, cwd=tmp_path, chosen=chosen) as address:
                works(address, key)
    finally:
        server.stop()
