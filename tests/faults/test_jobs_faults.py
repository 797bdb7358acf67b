"""Jobs when processes are killed: nothing is lost, what runs twice has a reason, a deadly job hurts nobody else."""

import asyncio
import time
from pathlib import Path

import msgspec

from keystead.engine import Valkey
from keystead.jobs import Jobs
from keystead.jobs.keys import Queue

from .jobs_chaos import Chaos
from .programs import programs


async def test_nothing_is_lost_when_everything_is_killed(tmp_path: Path) -> None:
    """The short form of ``make chaos-jobs``."""
    report = await Chaos(tmp_path, jobs=600, kills=12, seed=5).run()
    print("\n".join(report.lines()))
    assert report.holds, "\n".join(report.lines())
    assert report.accepted + report.unsure >= 600 - report.kills["producer"]
    assert report.ended + report.dead >= report.accepted


async def test_a_deadly_job_is_given_up_and_its_neighbours_live(valkey: Valkey, valkey_server, tmp_path: Path) -> None:
    """It kills its worker each time it runs. Two supervised workers come back each time."""
    jobs = Jobs(valkey)
    await jobs.enqueue_many("chaos.mark", ({"n": n, "pause": 0.02} for n in range(50)))
    await jobs.enqueue("chaos.deadly", n=1000)
    await jobs.enqueue_many("chaos.mark", ({"n": n, "pause": 0.02} for n in range(50, 100)))
    ended: set[int] = set()
    async with programs("tests.faults.jobs_program") as start:
        crew = [await start("work", valkey_server.url, str(tmp_path)) for _ in range(2)]
        async with asyncio.timeout(120):
            while len(ended) < 100 or not await Queue().work.dead_letters(valkey):
                await asyncio.sleep(0.1)
                for place, program in enumerate(crew):
                    if program.process.returncode is not None:
                        crew[place] = await start("work", valkey_server.url, str(tmp_path))
                ended = _ended(tmp_path)
    letters = await Queue().work.dead_letters(valkey)
    assert [msgspec.json.decode(letter.raw)["name"] for letter in letters] == ["chaos.deadly"]
    assert letters[0].attempts == 3 and "died with it" in letters[0].error
    assert ended == set(range(100))


async def test_the_job_of_a_killed_worker_runs_again_within_seconds(
    valkey: Valkey, valkey_server, tmp_path: Path
) -> None:
    async with programs("tests.faults.jobs_program") as start:
        first = await start("work", valkey_server.url, str(tmp_path))
        await first.hears("working")
        await Jobs(valkey).enqueue("chaos.mark", n=1, pause=600.0)
        async with asyncio.timeout(60):
            while not _lines(tmp_path, "start"):
                await asyncio.sleep(0.01)
        second = await start("work", valkey_server.url, str(tmp_path))
        await second.hears("working")
        killed_at = time.monotonic()
        await first.kill()
        async with asyncio.timeout(60):
            while len(_lines(tmp_path, "start")) < 2:
                await asyncio.sleep(0.01)
        print(f"ran again after {time.monotonic() - killed_at:.1f} s")


def _lines(directory: Path, word: str) -> list[list[str]]:
    path = directory / "runs"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split() for line in lines if line.startswith(word)]


def _ended(directory: Path) -> set[int]:
    return {int(line[1]) for line in _lines(directory, "end")}
