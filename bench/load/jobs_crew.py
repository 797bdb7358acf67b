"""The processes of a measured queue: one that queues jobs, and workers. Used by the other ``jobs_*`` programs.

Every process of a library is a ``python -m bench.load.queues``. Workers have a process group each, so that a kill takes
all of one. What jobs did is read off the board of ``queues.scene``.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import redis

from bench.load import protocol
from bench.load.queues import scene

POLL_SECONDS = 0.004
STOP_SECONDS = 4.0


class Crew:
    """One library on one server."""

    def __init__(self, library: str, url: str, directory: Path) -> None:
        self.library = library
        self.client = redis.Redis.from_url(url.replace("valkey://", "redis://", 1), socket_timeout=30)
        self.quick_recovery = False
        self._path = directory / "board"
        self.board = scene.Board.make(self._path)
        self._log = directory / "log"
        self._url = url
        self._workers: list[subprocess.Popen[bytes]] = []
        self._distribution = library

    def produce(self, mode: str, count: int = 1, per_second: float = 100.0) -> float:
        """Queue jobs from a process of their own; seconds that the queueing alone took."""
        done = subprocess.run(
            [*self._command(mode), "--count", str(count), "--per-second", str(per_second)],
            env=self._environment(0), capture_output=True, text=True, check=False,
        )
        if done.returncode:
            raise SystemExit(f"{self.library} could not queue jobs: {(done.stderr.strip() or 'no message')[-300:]}")
        answer = json.loads(done.stdout.splitlines()[-1])
        self._distribution = answer["distribution"]
        return float(answer["seconds"])

    def hire(self, slot: int = 0) -> "subprocess.Popen[bytes]":
        """Start a worker that writes into this slot of the board."""
        with self._log.open("ab") as log:
            worker = subprocess.Popen(self._command("work"), env=self._environment(slot), start_new_session=True,
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._workers.append(worker)
        return worker

    def kill(self, worker: "subprocess.Popen[bytes]") -> None:
        """kill -9 of the worker and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def dismiss(self) -> None:
        """End all workers: asked first, so that their children are waited for and their time is not lost."""
        for worker in self._workers:
            worker.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(max(0.0, deadline - time.monotonic()))
            self.kill(worker)
        self._workers.clear()

    def clear(self) -> None:
        """Before another pass: an empty server, an empty board, the same memory as at the beginning."""
        self.client.flushall()
        self.board.wipe()

    def memory(self) -> int:
        return int(self.client.info("memory")["used_memory"])

    def total(self, cell: int) -> float:
        return sum(self.board.cells(slot)[cell] for slot in range(scene.SLOTS))

    def wait(self, cell: int, value: float, seconds: float) -> bool:
        """Whether the sum of this cell over all workers reached ``value`` in time, and before the last worker ended."""
        deadline = time.monotonic() + seconds
        while self.total(cell) < value:
            if time.monotonic() > deadline or all(worker.poll() is not None for worker in self._workers):
                return False
            time.sleep(POLL_SECONDS)
        return True

    def must_wait(self, cell: int, value: float, seconds: float) -> None:
        if not self.wait(cell, value, seconds):
            said = self._log.read_text(errors="replace").strip()[-300:] if self._log.exists() else ""
            raise SystemExit(f"{self.library}: {self.total(cell):.0f} of {value:.0f} within {seconds:.0f} s; {said}")

    def facts(self) -> dict[str, object]:
        return {"library": f"{self._distribution} {version(self._distribution)}"}

    def _command(self, mode: str) -> list[str]:
        return [sys.executable, "-m", "bench.load.queues", self.library, mode]

    def _environment(self, slot: int) -> dict[str, str]:
        found = os.environ | {
            "BENCH_URL": self._url, "BENCH_VARIANT": self.library.partition(":")[2], "BENCH_BOARD": str(self._path),
            "BENCH_SLOT": str(slot), "BENCH_QUICK_RECOVERY": "1" if self.quick_recovery else "",
            "PYTHONWARNINGS": "ignore",
        }
        if self.library == "keystead":
            # An installer compiles the peers; ours runs from its sources, and would compile them at every start where
            # the machine is told to keep no compiled files.
            found.pop("PYTHONDONTWRITEBYTECODE", None)
            found["PYTHONPYCACHEPREFIX"] = str(self._path.parent / "compiled")
        return found


@contextlib.contextmanager
def crew(library: str, url: str) -> Iterator[Crew]:
    """A crew whose processes and files are gone afterwards, whatever happens."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        made = Crew(library, url, Path(directory))
        try:
            yield made
        finally:
            made.dismiss()
            made.client.close()


def flags() -> argparse.ArgumentParser:
    found = protocol.parser()
    found.add_argument("library", help="a module of bench.load.queues, and after a colon what it makes of it")
    return found


def is_quick(given: argparse.Namespace) -> bool:
    """Whether the run is to show that it works, not how fast."""
    return bool(given.seconds < 1)
