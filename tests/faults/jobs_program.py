"""A process of the chaos run: a worker whose jobs note each run in a file, or a producer that notes what was accepted.

A line of a file is one write, so what a killed process wrote is there, whole, and nothing else is.
"""

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from keystead.engine import connect
from keystead.errors import ReplyLost, Unavailable
from keystead.jobs import JobBook, Jobs, Worker, WorkerSettings


class Notes:
    """Lines that several processes add to one file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


async def work(url: str, directory: Path) -> None:
    note, pid = Notes(directory / "runs"), os.getpid()

    async def mark(n: int, pause: float = 0.0) -> None:
        note("start", n, pid, time.time())
        if pause:
            await asyncio.sleep(pause)
        note("end", n, pid, time.time())

    async def deadly(n: int) -> None:
        note("start", n, pid, time.time())
        os.kill(pid, 9)

    book = JobBook()
    book.register("chaos.mark", mark)
    book.register("chaos.deadly", deadly)
    valkey = await _connected(url)
    print("working", flush=True)
    await Worker(valkey, book, WorkerSettings(concurrency=20)).run(signals=True)
    await valkey.aclose()


async def produce(url: str, directory: Path, count: int, pause: float) -> None:
    path = directory / "accepted"
    lines = path.read_text().splitlines() if path.exists() else []
    first = max((int(line.split()[1]) for line in lines), default=-1) + 1
    note, jobs = Notes(path), Jobs(await _connected(url))
    print("producing", flush=True)
    for n in range(first, count):
        # Noted before as well: a job that was queued while its producer died is nobody's promise, and no surprise.
        note("intent", n)
        kind = n % 10
        chosen = (jobs.options(delay_seconds=0.3) if kind == 1 else jobs.options(keep_seconds=60) if kind == 2
                  else jobs.options(unique=f"n{n}") if kind == 3 else jobs)
        while True:
            try:
                await chosen.enqueue("chaos.mark", n=n, pause=random.choice((0.0, 0.05, 0.3, 1.0)))
                note("accepted", n)
            except ReplyLost:
                note("unsure", n)
            except Unavailable:
                await asyncio.sleep(0.1)
                continue
            break
        await asyncio.sleep(pause)
    print("produced", flush=True)


async def _connected(url: str):
    while True:
        try:
            return await connect(url)
        except Unavailable:
            await asyncio.sleep(0.1)


def main() -> None:
    role, url, directory, *rest = sys.argv[1:]
    if role == "work":
        asyncio.run(work(url, Path(directory)))
    else:
        asyncio.run(produce(url, Path(directory), int(rest[0]), float(rest[1])))


if __name__ == "__main__":
    main()
