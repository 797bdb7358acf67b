"""Real processes under a parent: started again when they die, ended when it is asked to, never left behind."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keystead.errors import DeclarationError
from keystead.jobs.processes import Processes

PATIENCE_SECONDS = 60

# Tells that it listens, then waits. The first signal ends it, or, if it is stubborn, only the second one. One that is
# told that it may become an orphan also ends when its parent is gone.
CHILD = """
import asyncio, os, pathlib, signal, sys
folder, patience = pathlib.Path(sys.argv[1]), int(sys.argv[2])

async def main():
    heard, ended = [], asyncio.Event()
    def stop(name="parent"):
        heard.append(name)
        (folder / f"{os.getpid()}.heard").write_text(" ".join(heard))
        if len(heard) >= patience or name == "parent":
            ended.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, signal.Signals(number).name)
    if "orphan" in sys.argv:
        from keystead.jobs.processes import stop_without_parent
        stop_without_parent(stop)
    (folder / f"{os.getpid()}.ready").touch()
    await ended.wait()

asyncio.run(main())
"""


def child(folder: Path, *more: str, signals: int = 1) -> list[str]:
    return [sys.executable, "-c", CHILD, str(folder), str(signals), *more]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.02)


def ready(folder: Path) -> set[int]:
    return {int(path.stem) for path in folder.glob("*.ready")}


def heard(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in folder.glob("*.heard"))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def running(processes: Processes):
    """The parent at work; it is stopped at the end, if the test has not done so."""
    task = asyncio.ensure_future(processes.run())
    try:
        yield task
    finally:
        processes.stop()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait([task])


async def test_all_run_at_once_and_end_when_asked(tmp_path: Path) -> None:
    processes = Processes(child(tmp_path), 3)
    async with running(processes) as task:
        await until(lambda: len(ready(tmp_path)) == 3)
        assert set(processes.pids) == ready(tmp_path)
        processes.stop()
        assert await task == 0
    assert heard(tmp_path) == ["SIGTERM"] * 3 and processes.pids == []


async def test_one_that_is_killed_is_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    processes = Processes(child(tmp_path), 2, say=said.append, first_pause_seconds=0.05)
    async with running(processes) as task:
        await until(lambda: len(ready(tmp_path)) == 2)
        killed, spared = processes.pids
        os.kill(killed, signal.SIGKILL)
        await until(lambda: len(ready(tmp_path)) == 3)
        assert killed not in processes.pids and spared in processes.pids and len(processes.pids) == 2
        processes.stop()
        assert await task == 0, "one that died before we were asked to stop does not count"
    assert said == ["process 1 died of SIGKILL, it starts again in 0.05 s"]


async def test_one_that_keeps_dying_is_started_ever_more_seldom() -> None:
    said: list[str] = []
    processes = Processes([sys.executable, "-c", "raise SystemExit(2)"], 1, say=said.append,
                          first_pause_seconds=0.01, most_pause_seconds=0.04)
    async with running(processes):
        await until(lambda: len(said) >= 5)
    assert said[:5] == [f"process 1 failed with exit code 2, it starts again in {pause} s"
                        for pause in ("0.01", "0.02", "0.04", "0.04", "0.04")]


async def test_the_pause_is_short_again_after_a_long_life() -> None:
    said: list[str] = []
    processes = Processes([sys.executable, "-c", "raise SystemExit(2)"], 1, say=said.append,
                          first_pause_seconds=0.01, steady_seconds=0)
    async with running(processes):
        await until(lambda: len(said) >= 3)
    assert {text.rsplit(" in ")[1] for text in said} == {"0.01 s"}


async def test_one_that_was_ended_by_someone_else_is_started_again_at_once(tmp_path: Path) -> None:
    said: list[str] = []
    processes = Processes(child(tmp_path), 1, say=said.append, first_pause_seconds=3600)
    async with running(processes):
        await until(lambda: len(ready(tmp_path)) == 1)
        os.kill(processes.pids[0], signal.SIGTERM)
        await until(lambda: len(ready(tmp_path)) == 2)
    assert said == ["process 1 was ended by someone, it starts again"]


async def test_every_signal_is_passed_on(tmp_path: Path) -> None:
    processes = Processes(child(tmp_path, signals=2), 2)
    async with running(processes) as task:
        await until(lambda: len(ready(tmp_path)) == 2)
        processes.stop(signal.SIGINT)
        await until(lambda: heard(tmp_path) == ["SIGINT"] * 2)
        assert not task.done()
        processes.stop(signal.SIGTERM)
        assert await task == 0
    assert heard(tmp_path) == ["SIGINT SIGTERM"] * 2


async def test_stopping_does_not_wait_for_a_pause_to_end() -> None:
    said: list[str] = []
    processes = Processes([sys.executable, "-c", "raise SystemExit(1)"], 1, say=said.append, first_pause_seconds=3600)
    async with running(processes) as task:
        await until(lambda: bool(said))
        processes.stop()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await task == 0


async def test_one_that_fails_while_it_stops_is_told_by_the_exit_code(tmp_path: Path) -> None:
    code = ("import pathlib, signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            f"pathlib.Path({str(tmp_path / '1.ready')!r}).touch()\nwhile True: time.sleep(0.05)")
    processes = Processes([sys.executable, "-c", code], 1)
    async with running(processes) as task:
        await until(lambda: len(ready(tmp_path)) == 1)
        processes.stop()
        assert await task == 1


async def test_what_cannot_be_started_is_told() -> None:
    said: list[str] = []
    processes = Processes(["/there/is/no/such/program"], 1, say=said.append, first_pause_seconds=3600)
    async with running(processes):
        await until(lambda: len(said) == 2)
    assert "cannot be started" in said[0]
    with pytest.raises(DeclarationError, match="one process at least"):
        Processes(["x"], 0)


async def test_children_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    parent = ("import asyncio, sys\nfrom keystead.jobs.processes import Processes\n"
              f"asyncio.run(Processes({child(tmp_path, 'orphan')!r}, 2).run(signals=True))")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent)
    await until(lambda: len(ready(tmp_path)) == 2)
    process.kill()
    await process.wait()
    await until(lambda: heard(tmp_path) == ["parent"] * 2)
    await until(lambda: not any(is_there(pid) for pid in ready(tmp_path)))


async def test_a_parent_that_is_asked_by_signal_leaves_with_success(tmp_path: Path) -> None:
    parent = ("import asyncio, sys\nfrom keystead.jobs.processes import Processes\n"
              f"sys.exit(asyncio.run(Processes({child(tmp_path)!r}, 2).run(signals=True)))")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent)
    await until(lambda: len(ready(tmp_path)) == 2)
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await process.wait() == 0
    assert heard(tmp_path) == ["SIGINT"] * 2
