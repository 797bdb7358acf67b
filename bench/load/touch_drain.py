"""Measure how touches reach their providers: ``python -m bench.load.touch_drain --touches 6000 --rate 2000 --url URL``.

All touches are queued first: that is the memory of what waits, and how fast they are accepted. Then worker processes
make them into messages and carry these, each with everything that an installation does beside. The providers answer
after 50 ms. The clock goes from the first request to the last answer, of whichever channel; then all must be settled.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from bench.load import touch_crowd
from bench.load.provider import Providers, providers, run

LATENCY_MS = 50.0
BATCH = 400
PATIENCE_SECONDS = 400.0


async def accept(url: str, directory: Path, people: int) -> dict[str, float]:
    """Fill the tables and queue a touch to everybody."""
    from keystead.clock import SystemClock
    from keystead.engine import connect
    from keystead.messaging.touches import Touches
    from keystead.patterns import Once
    from keystead.store import Database

    valkey = await connect(url)
    async with Database.open(f"sqlite:///{directory}/bench.sqlite") as database:
        await database.migrate()
        addresses = await touch_crowd.fill(database, people)
    touches = Touches(valkey, SystemClock(), most_queued=10 * people)
    batches = list(touch_crowd.touches_to(touches, people, BATCH))
    before = await used_memory(valkey)
    begin = time.perf_counter()
    for batch in batches:
        if any(done is not Once.DONE for done in await touches.queue_many(batch)):
            raise SystemExit("a touch was not accepted")
    took = time.perf_counter() - begin
    after = await used_memory(valkey)
    await valkey.aclose()
    return {"accepted_per_second": people / took, "bytes_per_touch": (after - before) / people,
            "addresses": float(addresses)}


async def used_memory(valkey: Any) -> int:
    return int((await valkey.execute_command("INFO", "memory"))["used_memory"])


class Workers:
    """Processes that work, and how much of the processors they and the server use."""

    def __init__(
        self, processes: int, url: str, directory: Path, provider: Providers, rate: float, profile: str
    ) -> None:
        self._working: list[subprocess.Popen[bytes]] = []
        for number in range(processes):
            watched = ["-m", "cProfile", "-o", f"{profile}.{number}"] if profile else []
            self._working.append(subprocess.Popen([
                sys.executable, *watched, "-m", "bench.load.touch_worker", "--url", url, "--directory", str(directory),
                "--provider-url", provider.url, "--rate", str(rate),
            ], env=os.environ, stdout=subprocess.PIPE))
        self._provider = provider
        for process in self._working:
            assert process.stdout is not None
            process.stdout.readline()  # it is ready, or has ended

    def begin(self) -> None:
        """Let all of them work, at once."""
        for process in self._working:
            process.send_signal(signal.SIGUSR1)

    def cpu_seconds(self, server: int) -> dict[str, float]:
        found = {f"worker {number}": _cpu(process.pid) for number, process in enumerate(self._working)}
        return {**found, "provider": _cpu(self._provider.process.pid), "server": _cpu(server)}

    def check(self) -> None:
        if any(process.poll() is not None for process in self._working):
            raise SystemExit("a worker process ended")

    def end(self) -> None:
        for process in self._working:
            process.terminate()
        for process in self._working:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def drain(
    url: str, given: Any, messages: int, directory: Path, way: Providers
) -> tuple[dict[str, float], dict[str, Any]]:
    """Let the workers carry everything: figures, and what a reader needs to judge them."""
    from keystead.engine import connect

    valkey = await connect(url)
    server = int((await valkey.execute_command("INFO", "server"))["process_id"])
    await valkey.execute_command("CONFIG", "RESETSTAT")
    workers = Workers(given.processes, url, directory, way, given.rate, given.profile)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        before = workers.cpu_seconds(server)
        workers.begin()
        sent = 0
        while sent < messages:
            workers.check()
            if time.monotonic() > deadline:
                raise SystemExit(f"{sent} of {messages} messages after {PATIENCE_SECONDS:.0f} s: {way.seen()}")
            await asyncio.sleep(0.25)
            seen: dict[str, Any] = way.seen()
            sent = sum(seen["messages"].values())
            if not any(seen["first_at"].values()):
                before = workers.cpu_seconds(server)
        after = workers.cpu_seconds(server)
        left = await _settled(valkey)
        scripts = await _script_times(valkey)
        log_seconds = await _logged(valkey, time.monotonic())
    finally:
        workers.end()
        await valkey.aclose()
    began, ended = min(filter(None, seen["first_at"].values())), max(seen["last_at"].values())
    took = ended - began
    allowed = max(seen["messages"].values()) / given.rate
    if sent != messages or left:
        raise SystemExit(f"{sent} of {messages} messages were sent, and {left} are held still")
    facts = {"cpu_share": {name: round((after[name] - before[name]) / took, 2) for name in after},
             "provider": seen, "scripts": scripts, "log_seconds_more": round(log_seconds, 1)}
    slowest = scripts["evalsha"]["p99_ms"]  # the few that the server has not seen before are evaluated instead
    return {"seconds": took, "allowed_seconds": allowed, "against_allowed": allowed / took,
            "messages_per_second": messages / took, "script_p99_ms": slowest}, facts


async def _settled(valkey: Any) -> int:
    """How many messages are held by somebody, once nobody has time to settle any more."""
    from keystead.messaging.email.keys import SENDING as EMAIL
    from keystead.messaging.push.keys import SENDING as PUSH
    from keystead.messaging.sms.keys import SENDING as SMS
    from keystead.messaging.touches.keys import TO_SEND

    left = 0
    for _ in range(200):
        lengths = [await channel.waiting().length(valkey) for channel in (EMAIL, PUSH, SMS)]
        intents = [1 async for _ in _some(valkey, "*:inflight:*")]
        left = sum(lengths) + len(intents) + await TO_SEND.length(valkey)
        if not left:
            return 0
        await asyncio.sleep(0.1)
    return left


async def _some(valkey: Any, pattern: str) -> Any:
    cursor: Any = 0
    while True:
        cursor, names = await valkey.execute_command("SCAN", cursor, "MATCH", pattern, "COUNT", 10_000)
        for name in names:
            yield name
        if int(cursor) == 0:
            return


async def _script_times(valkey: Any) -> dict[str, dict[str, float]]:
    """What the server says of the time that scripts took."""
    stats = await valkey.execute_command("INFO", "latencystats")
    calls = await valkey.execute_command("INFO", "commandstats")
    found = {}
    for name in ("evalsha", "eval", "fcall"):
        if (times := stats.get(f"latency_percentiles_usec_{name}")) is not None:
            spread = times if isinstance(times, dict) else dict(pair.split("=") for pair in times.split(","))
            mean = calls.get(f"cmdstat_{name}", {})
            found[name] = {"p50_ms": float(spread["p50"]) / 1000, "p99_ms": float(spread["p99"]) / 1000,
                           "p99.9_ms": float(spread["p99.9"]) / 1000, "calls": float(mean.get("calls", 0)),
                           "mean_us": float(mean.get("usec_per_call", 0))}
    return found


async def _logged(valkey: Any, since: float) -> float:
    """How much longer it takes until the log is in the database."""
    from keystead.messaging.touches.keys import TO_LOG

    while await TO_LOG.length(valkey) and time.monotonic() - since < PATIENCE_SECONDS:
        await asyncio.sleep(0.25)
    return time.monotonic() - since


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def main() -> None:
    flags = touch_crowd.flags()
    flags.add_argument("--rate", type=float, default=2000.0, help="messages a second, of each channel")
    flags.add_argument("--processes", type=int, default=2)
    flags.add_argument("--profile", default="", help="file for what cProfile finds in each worker")
    given = flags.parse_args()
    people = min(given.touches, 3000) if given.seconds < 1 else given.touches
    with tempfile.TemporaryDirectory(prefix="bench-") as name, providers(LATENCY_MS) as way:
        directory = Path(name)
        figures = await accept(given.url, directory, people)
        drained, facts = await drain(given.url, given, round(figures["addresses"]), directory, way)
    protocol_facts = {"library": f"keystead {version('keystead')}", "touches": people, "rate": given.rate,
                      "worker_processes": given.processes, "cores": os.cpu_count(), **facts}
    from bench.load import protocol

    protocol.answer(figures | drained, protocol_facts)


if __name__ == "__main__":
    run(main)
