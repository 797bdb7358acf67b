"""Measure HTTP: ``python -m bench.load.api keystead read`` starts a whole ``keystead up`` and asks it from outside.

``hello`` is a bare FastAPI application with one route, served by the same HTTP server on the same event loop: what the
framework itself can do on this machine at this minute.
"""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import uvloop

from bench.load import protocol
from bench.load.http import Tally, drive, in_turn, request
from bench.load.up import WAIT_SECONDS, Up, keystead_apart, keystead_up, stop, wait_until_answered

CONNECTIONS = 32
PEOPLE = 200
JOBS = 50

HELLO_PROGRAM = """
import sys, uvicorn
from bench.load.api import hello_app
uvicorn.run(hello_app(), port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
"""

# What is asked, by kind: how many touches wait and since when, from Valkey; one job that has ended, from Valkey; one
# person, from SQL; an event that a person is told of.
KINDS = ("read", "read_job", "read_sql", "send")


def hello_app() -> object:
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/")
    async def hello() -> dict[str, str]:
        return {"hello": "world"}

    return app


@contextlib.contextmanager
def hello_server() -> Iterator[int]:
    """The bare application in a process of its own; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", HELLO_PROGRAM, str(port)])
    try:
        wait_until_answered(f"http://127.0.0.1:{port}/")
        yield port
    finally:
        stop(process)


async def prepare(up: Up) -> tuple[str, list[str], list[str]]:
    """An admin key, people who can be reached by text, and jobs that have ended; beside the running installation."""
    from keystead.app import App
    from keystead.jobs import JobBook, Jobs, Worker, WorkerSettings
    from keystead.settings import load_settings

    async def nothing(number: int) -> int:
        return number

    book = JobBook()
    book.register("bench.nothing", nothing)
    where = {"valkey.url": up.valkey_url or f"embedded://{up.directory}", "installation.directory": str(up.directory)}
    async with App(load_settings(where)).running() as running:
        key = (await running.admin_keys.create("bench", ("*",))).text
        people = [(await running.users.ensure("bench", str(number))).sub for number in range(PEOPLE)]
        for number, sub in enumerate(people):
            await running.switchboard.contacts.add_phone(sub, f"+1555555{number:04d}", verified=True)
        jobs = Jobs(running.valkey, clock=running.clock).options(queue="bench", keep_seconds=3600)
        handles = [await jobs.enqueue("bench.nothing", number=number) for number in range(JOBS)]
        worker = Worker(running.valkey, book, WorkerSettings(queues=("bench",)), clock=running.clock)
        working = asyncio.ensure_future(worker.run())
        for handle in handles:
            await handle.wait(WAIT_SECONDS)
        worker.stop()
        await working
        return key, people, [handle.uid for handle in handles]


def asked(kind: str, key: str, people: list[str], jobs: list[str]) -> tuple[list[bytes], int]:
    """The requests that are sent in turn, and the status that all of them must have."""
    if kind == "read":
        return [request("GET", "/api/1/admin/touch/send_queue_info", token=key)], 200
    if kind == "read_job":
        return [request("GET", f"/api/1/jobs/{uid}", token=key) for uid in jobs], 200
    if kind == "read_sql":
        return [request("GET", f"/api/1/users/{sub}", token=key) for sub in people], 200
    body = {"event_slug": "daily_reminder", "channel": "sms",
            "event_parameters": {"name": "Ada", "url": "https://example.com/"}}
    return [request("POST", "/api/1/touches", token=key, body=json.dumps({**body, "user_sub": sub}).encode())
            for sub in people], 202


def measure(who: str, kind: str, seconds: float, warm_up: float) -> dict[str, float]:
    with contextlib.ExitStack() as stack:
        requests, expected = [request("GET", "/")], 200
        up: Up | None = None
        if who == "hello":
            port = stack.enter_context(hello_server())
        else:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-api-"))) / "data"
            up = stack.enter_context(keystead_apart(directory) if who == "apart" else keystead_up(directory))
            port = up.port
            key, people, jobs = asyncio.run(prepare(up))
            wait_until_answered(f"http://127.0.0.1:{port}/api/1/users/{people[0]}", key)
            requests, expected = asked(kind, key, people, jobs)
        used = up.cpu_seconds() if up is not None else 0.0
        tally: Tally = uvloop.run(
            drive(port, in_turn(requests), connections=CONNECTIONS, seconds=seconds, warm_up=warm_up)
        )
        tally.check(expected)
        figures = {"per_second": tally.per_second, "p50_ms": tally.percentile_ms(0.5),
                   "p99_ms": tally.percentile_ms(0.99)}
        if up is not None:
            figures["cores"] = (up.cpu_seconds() - used) / (seconds + warm_up)
        return figures


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("who", choices=("keystead", "apart", "hello"))
    flags.add_argument("kind", choices=KINDS)
    given = flags.parse_args()
    library = "fastapi" if given.who == "hello" else "keystead"
    facts = {"library": f"{library} {version(library)}", "uvicorn": version("uvicorn"), "loop": "uvloop",
             "connections": CONNECTIONS}
    protocol.answer(measure(given.who, given.kind, given.seconds, given.warm_up), facts)


if __name__ == "__main__":
    main()
