"""Rotation under fire: programs that rotate are killed while counting goes on.

    python -m tests.faults.rotation_chaos                                   100 rounds on each database
    python -m tests.faults.rotation_chaos --rounds 10 --database sqlite

In each round two programs rotate, some hundred things are counted, and both are killed at a random moment. Then the
sums in SQL and Valkey must be those of the log. A day passes with each round.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.engine import Valkey, connect
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.server import LocalServer
from tests.databases import PostgreSQL, migrated
from tests.stats import counted
from tests.stats.event_log import EventLog, stored

from .programs import PROJECT

FIRST_DAY = dates.date_to_unix_date(datetime(2026, 3, 1).date())
BACK = 14  # days, more than anything is held
ZONE = ZoneInfo(counted.LA)


def noon(day: int) -> float:
    return dates.day_starts_at(dates.UnixDate(day), ZONE) + 12 * 3600


@dataclass
class Report:
    """What happened."""

    rounds: int = 0
    kills: int = 0
    counted: int = 0
    runs: int = 0
    in_the_middle: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        middle = ", ".join(f"{number} {name}" for name, number in sorted(self.in_the_middle.items())) or "none"
        return [
            f"rounds            {self.rounds}, with {self.kills} kills and {self.runs} rotations that ended",
            f"counted           {self.counted}",
            f"left under way    {middle}",
            f"sums that differ  {len(self.wrong)}",
            *self.wrong[:10],
        ]


class Rotators:
    """Programs that rotate; all are gone when the block ends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._alive: list[int] = []
        self.ran = 0
        self.problems: list[str] = []
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, database_url: str) -> AsyncIterator["Rotators"]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.faults.rotation_program", url, database_url, cwd=PROJECT,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        rotators = cls(process)
        try:
            yield rotators
        finally:
            rotators.kill()
            process.kill()
            await process.wait()
            await rotators._listening

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, *rest = line.decode().split()
            if word == "ready":
                self._alive.append(int(rest[0]))
            elif word == "ran":
                self.ran += 1
            elif word == "problem":
                self.problems.append(" ".join(rest))

    def start(self, now: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{now}\n".encode())

    def ready(self) -> int:
        return len(self._alive)

    def kill(self) -> int:
        """Kill all that are ready; says how many. A problem ends one too, and is heard of otherwise."""
        for pid in self._alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._alive:
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.001)
        killed = len(self._alive)
        self._alive.clear()
        return killed


async def fire(
    valkey: Valkey, url: str, database: Database, database_url: str, rounds: int, rng: random.Random
) -> Report:
    """So many rounds; says what happened."""
    report, catalogue = Report(), counted.catalogue()
    log, tables = EventLog(catalogue, rng), FamilyTables(catalogue)
    await tables.ensure(database)
    async with Rotators.open(url, database_url) as rotators:
        for number in range(rounds):
            today = FIRST_DAY + number
            month = dates.unix_month(noon(today), ZONE)
            for _ in range(2):
                rotators.start(noon(today))
            ends_at = None
            async with asyncio.timeout(120):
                while ends_at is None or time.monotonic() < ends_at or report.counted < 60 * (number + 1):
                    await log.count(valkey, today - rng.randrange(BACK), month - rng.randrange(2))
                    report.counted += 1
                    if ends_at is None and rotators.ready() == 2:
                        ends_at = time.monotonic() + rng.uniform(0.0, 1.2)
                    await asyncio.sleep(0.001)
            report.kills += rotators.kill()
            report.rounds, report.runs = number + 1, rotators.ran
            for one in catalogue:
                state = await one.rotation_state(valkey)
                if state is not None and (state.id is not None or state.late_id is not None):
                    report.in_the_middle[one.name] += 1
            found, right = await stored(valkey, database, catalogue, today, tables), log.expected()
            report.wrong += rotators.problems
            report.wrong += [f"round {number}: {key}: {found[key]} instead of {right[key]}"
                             for key in {*found, *right} if found[key] != right[key]]
            if report.wrong:
                break
    return report


async def main(rounds: int, kind: str, seed: int) -> bool:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = LocalServer()
        server.start()
        stack.callback(server.stop)
        if kind == "sqlite":
            url = f"sqlite:///{directory}/days.db"
            await asyncio.to_thread(migrated, url)
        else:
            directory.chmod(0o755)
            url = stack.enter_context(PostgreSQL(directory / "postgresql").database())
            await asyncio.to_thread(migrated, url)
        valkey = await connect(server.url)
        started = time.monotonic()
        async with Database.open(url) as database:
            report = await fire(valkey, server.url, database, url, rounds, random.Random(seed))
        await valkey.aclose()
        print(kind, f"({time.monotonic() - started:.0f} s)", *report.lines(), sep="\n  ", flush=True)
        return not report.wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--database", choices=("sqlite", "postgresql"))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    kinds = [given.database] if given.database else ["sqlite", "postgresql"]
    held = [asyncio.run(main(given.rounds, kind, given.seed)) for kind in kinds]
    sys.exit(0 if all(held) else 1)
