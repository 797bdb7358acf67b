"""HTTP and work in processes of their own, as in production: one server with SQLite, and a cluster with PostgreSQL.

The address of the world is one that nobody can reach from here, so nothing may depend on the way through it.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from keystead.app import App
from keystead.edge import user_token
from keystead.jobs import FairJobs, JobRef, Jobs
from keystead.settings import load_settings
from tests.cli.command import environment
from tests.scenarios.test_a_reminder_goes_out import until

PUBLIC_URL = "https://app.example.com"
PROGRAM = '''
from pathlib import Path
from keystead.jobs import Recurring, cron, job

def told(line):
    with Path("told").open("a") as file:
        file.write(line + "\\n")

@job(name="scenario.reached")
async def reached(channel: str):
    told("reached " + channel)

@job(name="scenario.tenant")
async def tenant_work(number: int):
    told(f"tenant {number}")

@job(name="scenario.minute")
async def minute():
    told("minute")

EACH = Recurring(minute, cron("* * * * *", "UTC"))
'''


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def part(directory: Path, settings: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    directory.mkdir(exist_ok=True)
    (directory / "town.py").write_text(PROGRAM)
    named = {"KEYSTEAD_" + name.replace(".", "_").upper(): value for name, value in settings.items()}
    with (directory / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "keystead.cli", *arguments], cwd=directory, env=environment(**named), text=True,
            stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.mark.parametrize(("topology", "processes"), [
    ("one", 1),
    pytest.param("cluster", 2, marks=[pytest.mark.cluster, pytest.mark.xdist_group("cluster")]),
])
async def test_who_answers_and_who_works_make_one_installation(
    request: pytest.FixtureRequest, tmp_path: Path, topology: str, processes: int
) -> None:
    if topology == "one":
        server = request.getfixturevalue("valkey_server")
        server.ensure_running()
        server.call("FLUSHALL")
        await _live(server.url, f"sqlite:///{tmp_path}/shared.sqlite", tmp_path, processes)
        return
    cluster = request.getfixturevalue("valkey_cluster")
    cluster.heal()
    cluster.flush()
    with request.getfixturevalue("postgresql").database() as store_url:
        await _live(cluster.url, store_url, tmp_path, processes)


async def _live(valkey_url: str, store_url: str, tmp_path: Path, processes: int) -> None:
    port = free_port()
    settings = {
        "valkey.url": valkey_url, "store.url": store_url, "store.files_url": (tmp_path / "files").as_uri(),
        "installation.secret": "s" * 40, "messaging.public_url": PUBLIC_URL, "http.port": str(port),
        "program.modules": "town", "push.cold_seconds": "1", "messaging.quiet_from_hour": "0",
        "messaging.quiet_until_hour": "0",
    }
    api, worker = tmp_path / "api", tmp_path / "worker"
    with part(api, settings, "api", "--processes", str(processes)) as answering, \
            part(worker, settings, "worker") as working:
        async with httpx.AsyncClient(timeout=60, base_url=f"http://127.0.0.1:{port}") as client:

            async def answers() -> bool:
                assert answering.poll() is None, (api / "said").read_text()
                assert working.poll() is None, (worker / "said").read_text()
                try:
                    return (await client.get("/health")).status_code == 200
                except httpx.TransportError:
                    return False

            await until(answers)
            del settings["program.modules"]
            app = App(load_settings({**settings, "installation.directory": str(tmp_path / "looking")}, environment={}))
            async with app.running() as running:
                await _write_to_somebody(running, client, worker)
        for process in (answering, working):
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    for directory in (api, worker):
        said = (directory / "said").read_text()
        assert "Traceback" not in said, said
    assert not (api / "told").exists(), "who answers does not work"


async def _write_to_somebody(running, client: httpx.AsyncClient, worker: Path) -> None:
    board = running.switchboard
    ada = await running.users.ensure("scenario", "ada", given_name="Ada")
    await board.contacts.add_phone(ada.sub, "+14155550123", verified=True)
    await board.contacts.add_email(ada.sub, "ada@example.com", verified=True)
    await board.tokens.register(ada.sub, "ExponentPushToken[ada]", "ios")
    # A person's token that was made here counts there: the processes share their secret.
    token = {"authorization": f"Bearer {user_token(running.tickets, ada.sub, lasts_seconds=600)}"}
    assert (await client.get("/api/1/keys")).status_code == 401
    assert (await client.get("/api/1/keys", headers=token)).status_code in (200, 403)
    for channel in ("sms", "email", "push"):
        await board.messaging.touch(
            ada.sub, "daily_reminder", channel=channel, parameters={"name": "Ada", "url": f"{PUBLIC_URL}/l/x"},
            on_success=JobRef("scenario.reached", {"channel": channel}),
        )
    await FairJobs(Jobs(running.valkey, clock=running.clock)).enqueue("quiet", "scenario.tenant", {"number": 7})

    async def told() -> bool:
        lines = (worker / "told").read_text().split("\n") if (worker / "told").exists() else []
        return {"reached sms", "reached email", "reached push", "tenant 7", "minute"} <= set(lines)

    # News of a text and of an email come only by webhook.
    await until(told)
