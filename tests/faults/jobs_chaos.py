"""Jobs under fire: workers, producer and server are killed at random while jobs are queued and run.

    make chaos-jobs                                   10,000 jobs, 200 kills
    python -m tests.faults.jobs_chaos --jobs 500 --kills 10

Afterwards every job that was accepted must have ended or be a dead letter, and every second run of a job must have a
reason: the process that ran it before, or the server, was killed in between.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec

from keystead.engine import connect
from keystead.jobs.keys import Queue
from keystead.testing.server import LocalServer

from .programs import Program, Starter, programs

WORKERS = 2
DRAIN_SECONDS = 180.0


@dataclass
class Report:
    """What happened."""

    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    accepted: int = 0
    unsure: int = 0
    ended: int = 0
    dead: int = 0
    lost: list[int] = field(default_factory=list)
    repeated: int = 0
    unexplained: list[str] = field(default_factory=list)
    recovery_seconds: list[float] = field(default_factory=list)
    left: str = ""

    def lines(self) -> list[str]:
        killed = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        found = [
            f"killed            {sum(self.kills.values())}: {killed}",
            f"accepted          {self.accepted} (and {self.unsure} whose answer was lost)",
            f"ended             {self.ended}",
            f"dead letters      {self.dead}",
            f"lost              {len(self.lost)} {self.lost[:10] or ''}",
            f"run again         {self.repeated}, of which without a reason: {len(self.unexplained)}",
        ]
        if self.recovery_seconds:
            times = self.recovery_seconds
            found.append(f"recovery seconds  median {statistics.median(times):.1f}, worst {max(times):.1f}")
        return [*found, *self.unexplained[:10], *([self.left] if self.left else [])]

    @property
    def holds(self) -> bool:
        return not self.lost and not self.unexplained and not self.left


class Chaos:
    """One run."""

    def __init__(self, directory: Path, jobs: int, kills: int, seed: int) -> None:
        self.directory, self.jobs, self.kills = directory, jobs, kills
        self.report = Report()
        self.killed_at: dict[int, float] = {}
        self.server_killed_at: list[float] = []
        self._random = random.Random(seed)
        self._server = LocalServer({"appendonly": "yes", "appendfsync": "always"})

    async def run(self, tell=lambda line: None) -> Report:
        self._server.start()
        try:
            async with programs("tests.faults.jobs_program") as start:
                await self._fire(start, tell)
                tell("waiting until everything has ended")
                await self._drain()
            self._judge(await self._dead())
        finally:
            self._server.stop()
        return self.report

    async def _fire(self, start: Starter, tell) -> None:
        async def worker() -> Program:
            return await start("work", self._server.url, str(self.directory))

        async def producer() -> Program:
            # Slow enough that jobs are queued during the whole time of the kills.
            pause = 0.8 * self.kills / max(1, self.jobs)
            return await start("produce", self._server.url, str(self.directory), str(self.jobs), str(pause))

        crew = [await worker() for _ in range(WORKERS)]
        boss = await producer()
        for program, word in [*((one, "working") for one in crew), (boss, "producing")]:
            await program.hears(word)
        done = 0
        while done < self.kills:
            await asyncio.sleep(self._random.uniform(0.1, 0.9))
            # The reserve of kills that outlast the producer falls on workers and server.
            what = self._random.choices(("worker", "producer", "server"), (6, 2, 1))[0]
            if what == "producer" and boss.words("produced"):
                continue
            if what == "worker":
                place = self._random.randrange(WORKERS)
                await crew[place].hears("working")  # one that still starts holds nothing
                await asyncio.sleep(self._random.uniform(0.2, 1.0))
                self.killed_at[crew[place].process.pid] = time.time()
                await crew[place].kill()
                crew[place] = await worker()
            elif what == "producer":
                await boss.hears("producing")
                await boss.kill()
                boss = await producer()
            else:
                self.server_killed_at.append(time.time())
                self._server.kill()
                await asyncio.sleep(self._random.uniform(0, 0.5))
                self._server.ensure_running()
            self.report.kills[what] += 1
            done += 1
            if done % 10 == 0:
                tell(f"{done} of {self.kills} kills")
        await boss.hears("produced", seconds=600)

    async def _drain(self) -> None:
        valkey, queue = await connect(self._server.url), Queue()
        deadline = time.monotonic() + DRAIN_SECONDS
        try:
            while True:
                held = {key: await valkey.llen(key)
                        async for key in valkey.scan_iter("jobs:processing:*", _type="list")}
                waiting, delayed = await queue.work.length(valkey), await queue.delayed.size(valkey)
                if not waiting and not delayed and not sum(held.values()):
                    return
                if time.monotonic() > deadline:
                    self.report.left = f"still there: {waiting} waiting, {delayed} delayed, held {held}"
                    return
                await asyncio.sleep(0.2)
        finally:
            await valkey.aclose()

    async def _dead(self) -> set[int]:
        valkey = await connect(self._server.url)
        try:
            letters = await Queue().work.dead_letters(valkey)
        finally:
            await valkey.aclose()
        return {msgspec.json.decode(letter.raw)["kwargs"]["n"] for letter in letters}

    def _judge(self, dead: set[int]) -> None:
        report = self.report
        said: dict[str, set[int]] = defaultdict(set)
        for line in (self.directory / "accepted").read_text().splitlines():
            word, n = line.split()
            said[word].add(int(n))
        runs: dict[int, list[tuple[float, int]]] = defaultdict(list)
        ended: set[int] = set()
        for line in (self.directory / "runs").read_text().splitlines():
            word, n, pid, at = line.split()
            if word == "start":
                runs[int(n)].append((float(at), int(pid)))
            else:
                ended.add(int(n))
        report.accepted, report.unsure = len(said["accepted"]), len(said["unsure"])
        report.ended, report.dead = len(ended), len(dead)
        report.lost = sorted(said["accepted"] - ended - dead)
        for n, found in runs.items():
            found.sort()
            for (before, pid), (after, _) in pairwise(found):
                report.repeated += 1
                killed = self.killed_at.get(pid)
                if killed is not None and before - 1 <= killed <= after:
                    if n not in dead:
                        report.recovery_seconds.append(after - killed)
                # A server that comes back finds leases that ran out; what it had not heard of runs again.
                elif not any(before - 5 <= at <= after for at in self.server_killed_at):
                    report.unexplained.append(f"job {n} ran at {before:.2f} in {pid}, and again at {after:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.jobs_chaos", description="jobs under fire")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        chaos = Chaos(Path(directory), given.jobs, given.kills, given.seed)
        report = asyncio.run(chaos.run(lambda line: print(line, flush=True)))
    print("\n".join(report.lines()))
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
