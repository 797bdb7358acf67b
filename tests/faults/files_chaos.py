"""Files under fire: processes that save and sweep, and the server, are killed at random.

    python -m tests.faults.files_chaos                                20,000 files, 200 kills, on SQLite
    python -m tests.faults.files_chaos --database postgresql --files 2000 --kills 50

Afterwards everything that is due is swept, and then every object must have a row, every row its object, and every file
that was said to be saved must be there byte for byte. What is not so counts as an error.
"""

import argparse
import asyncio
import contextlib
import hashlib
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sqlalchemy import select

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.store import Database
from keystead.store.files import open_files
from keystead.store.files_tables import FILES
from keystead.store.keys import FILES_PURGATORY
from keystead.store.sweep import Sweep
from keystead.testing.server import LocalServer

from ..databases import PostgreSQL, migrated
from . import files_program

GOAL = 0.0001
START_SECONDS = 60.0
LATER_SECONDS = (0.0, 700.0, 86_400.0, 9 * 86_400.0)


@dataclass
class Report:
    """What happened."""

    kills: Counter[str] = field(default_factory=Counter)
    begun: int = 0
    said_saved: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    purged: int = 0
    kept: int = 0
    rows: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def error_rate(self) -> float:
        return len(self.errors) / max(1, self.begun)

    @property
    def holds(self) -> bool:
        return self.begun > 0 and self.error_rate < GOAL

    def lines(self) -> list[str]:
        refused = ", ".join(f"{count} {name}" for name, count in sorted(self.refused.items()))
        killed = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        return [
            f"killed        {self.kills.total()}: {killed}",
            f"files begun   {self.begun}",
            f"said saved    {self.said_saved}; the rest was refused, deleted again, or its process was killed",
            f"refused       {self.refused.total()}: {refused or 'none'}",
            f"swept         {self.purged} purged, {self.kept} kept because they were saved after all",
            f"files at end  {self.rows}",
            f"errors        {len(self.errors)}: {self.error_rate:.4%} of the files begun; the goal is below {GOAL:.2%}",
            *self.errors[:10],
        ]


class Chaos:
    """One run."""

    def __init__(self, directory: Path, server: LocalServer, database_url: str, files: int, kills: int, seed: int,
                 *, server_too: bool = False) -> None:
        self.directory, self.server, self.database_url = directory, server, database_url
        self.files, self.kills, self.server_too = files, kills, server_too
        self.report = Report()
        self._random = random.Random(seed)
        # Forked from a process that has everything loaded and no thread, so that a new one is there at once.
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.faults.files_program"])
        self._places: dict[str, BaseProcess] = {}
        self._said: list[list[str]] = []
        self._counted: Counter[str] = Counter()
        self._read_bytes = 0

    async def run(self, tell: Any = lambda line: None) -> Report:
        with contextlib.ExitStack() as stack:
            stack.callback(self._end)
            await self._fire(tell)
        self._read_log()
        await self._judge()
        return self.report

    async def _fire(self, tell: Any) -> None:
        for name in ("saver", "sweeper", "slow sweeper"):
            self._start(name)
        while self.report.kills.total() < self.kills or self._count("began") < self.files:
            await asyncio.sleep(self._random.uniform(0.02, 0.4))
            for name, process in list(self._places.items()):
                if not process.is_alive():  # a saver that has saved its share
                    self._start(name)
            if self.report.kills.total() >= self.kills:
                continue
            what = self._random.choices(("saver", "sweeper", "slow sweeper", "server"),
                                        (6, 2, 1, 0.3 if self.server_too else 0))[0]
            if what == "server":
                self.server.kill()
                await asyncio.sleep(self._random.uniform(0, 0.3))
                self.server.ensure_running()
            else:
                process = self._places[what]
                process.kill()
                await asyncio.to_thread(process.join)
                self._start(what)
            self.report.kills[what] += 1
            if self.report.kills.total() % 20 == 0:
                tell(f"{self.report.kills.total()} of {self.kills} kills, {self._count('began')} files begun")

    def _start(self, name: str) -> None:
        places = (self.server.url, self.database_url, str(self.directory))
        if name == "saver":
            target, last = files_program.save, (self._random.randrange(2**32), 1000)
        else:
            target, last = files_program.sweep, (0.0 if name == "sweeper" else 1.0,)
        process = self._processes.Process(target=target, args=(*places, *last), daemon=True)
        said = self._count("saving") + self._count("sweeping")
        process.start()
        self._places[name] = process
        deadline = time.monotonic() + START_SECONDS
        while self._count("saving") + self._count("sweeping") <= said:  # one that still starts can lose nothing
            assert time.monotonic() < deadline and process.is_alive(), f"the {name} did not start"
            time.sleep(0.01)

    def _end(self) -> None:
        for process in self._places.values():
            process.kill()
            process.join()

    def _catch_up(self) -> None:
        """Read what was said since the last time."""
        log = self.directory / "log"
        if log.exists():
            with log.open("rb") as file:
                file.seek(self._read_bytes)
                for line in file:
                    self._read_bytes += len(line)
                    self._said.append(line.decode().split())
                    self._counted[self._said[-1][0]] += 1

    def _count(self, word: str) -> int:
        self._catch_up()
        return self._counted[word]

    def _read_log(self) -> None:
        self._catch_up()
        for words in self._said:
            self.report.begun += words[0] == "began"
            self.report.said_saved += words[0] == "saved"
            if words[0] == "refused":
                self.report.refused[words[1]] += 1
            if words[0] == "swept":
                self.report.purged += int(words[1])
                self.report.kept += int(words[2])

    async def _judge(self) -> None:
        report, clock = self.report, SystemClock()
        valkey = await connect(self.server.url)
        async with (
            Database.open(self.database_url) as database,
            open_files((self.directory / "objects").as_uri()) as objects,
        ):
            for seconds in LATER_SECONDS:
                clock.offset_seconds += seconds
                swept = await Sweep(valkey, database, objects, clock).sweep()
                report.purged, report.kept = report.purged + swept.purged, report.kept + swept.kept
            async with database.reading() as sql:
                rows = {row.key: row.sha256 for row in await sql.execute(select(FILES.c.key, FILES.c.sha256))}
            report.rows = len(rows)
            found = {key async for key in objects.keys()}  # noqa: SIM118 - not a mapping
            report.errors += [f"an object without a row: {key}" for key in sorted(found - set(rows))]
            report.errors += [f"a row without an object: {key}" for key in sorted(set(rows) - found)]
            listed = await FILES_PURGATORY.at().range(valkey)
            report.errors += [f"still listed: {entry.key}" for entry, _ in listed]
            partial = list((self.directory / "objects" / ".partial").iterdir())
            report.errors += [f"an unfinished write is left: {path.name}" for path in partial]
            for key, digest in rows.items():
                raw = b"".join([chunk async for chunk in objects.read(key)]) if key in found else b""
                if key in found and hashlib.sha256(raw).hexdigest() != digest:
                    report.errors.append(f"other bytes than were saved: {key}")
            for words in self._said:
                if words[0] == "saved" and words[1] not in rows:
                    report.errors.append(f"said to be saved and not there: {words[1]}")
        await valkey.aclose()


@contextlib.contextmanager
def database_of(kind: str, directory: Path) -> Iterator[str]:
    """The URL of a new database of this kind, with all tables."""
    if kind == "sqlite":
        url = f"sqlite:///{directory / 'keystead.db'}"
        migrated(url)
        yield url
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        server = PostgreSQL(Path(place, "postgresql"))
        with server.database(server.template) as url:
            yield url


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.files_chaos", description="files under fire")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    given = parser.parse_args()
    files_program.quiet()
    server = LocalServer({"appendonly": "yes", "appendfsync": "always"})
    with tempfile.TemporaryDirectory() as directory, database_of(given.database, Path(directory)) as url:
        server.start()
        try:
            chaos = Chaos(Path(directory), server, url, given.files, given.kills, given.seed, server_too=True)
            report = asyncio.run(chaos.run(lambda line: print(line, flush=True)))
        finally:
            server.stop()
    print("\n".join(report.lines()))
    return 0 if report.holds and not report.errors else 1


if __name__ == "__main__":
    sys.exit(main())
