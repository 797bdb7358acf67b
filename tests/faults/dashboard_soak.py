"""Pages of the dashboard left open while much happens: neither the server nor the page may grow.

``python -m tests.faults.dashboard_soak --minutes 60`` keeps pages open on a running installation and prints what both
hold; with ``--speed 20`` everything that happens each second happens twenty times a second, so that three minutes are
worth an hour of updates. Exit code 1 if something grew.
"""

import argparse
import asyncio
import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from keystead.app import App
from keystead.engine import connect
from keystead.jobs import Jobs
from keystead.settings import load_settings
from keystead.web import login_link
from tests.browser import FLAGS, MISSING, find_browser

PAGES = ("/", "/jobs", "/keys", "/messages")
KEPT_SAMPLES = 60  # the server keeps ten minutes; with fewer it is full sooner


@dataclass(frozen=True, slots=True)
class Held:
    """What is held at one moment; of the pages the sum."""

    updates: int
    server_mb: float
    server_objects: int
    page_mb: float
    page_nodes: int
    page_listeners: int

    def growth(self, before: "Held") -> list[str]:
        """What holds clearly more than before, in words. There is room for what comes and goes."""
        rooms = {"server_mb": (1.10, 15.0), "server_objects": (1.10, 5000), "page_mb": (1.25, 4.0),
                 "page_nodes": (1.15, 400), "page_listeners": (1.15, 100)}
        found = []
        for name, (factor, more) in rooms.items():
            was, now = getattr(before, name), getattr(self, name)
            if now > was * factor + more:
                found.append(f"{name} grew from {was:g} to {now:g}")
        return found


def serve(directory: str, speed: float) -> None:
    """The installation of a soak, in a process of its own: its beats and timers run faster. Tells on SIGUSR1 what it
    holds."""
    from nicegui import ui

    from keystead.web import jobs_watch, sampler, serve

    plain_timer: Any = ui.timer

    def timer(seconds: float, *arguments: Any, **options: Any) -> Any:
        return plain_timer(seconds / speed, *arguments, **options)

    ui.timer = timer  # type: ignore[assignment, misc]
    sampler.EVERY_SECONDS = jobs_watch.EVERY_SECONDS = 1 / speed
    if speed > 1:
        sampler.KEPT_SAMPLES = KEPT_SAMPLES

    def tell(*_: object) -> None:
        gc.collect()
        megabytes = psutil.Process().memory_info().rss / 1_000_000
        os.write(1, f"{megabytes:.3f} {len(gc.get_objects())}\n".encode())

    signal.signal(signal.SIGUSR1, tell)
    app = App(load_settings({"valkey.url": f"embedded://{directory}", "http.port": 0}, environment={}))
    asyncio.run(serve(app, on_ready=lambda ready: print(ready.url, flush=True)))


class Soak:
    """An installation, pages that look at it, and something that happens."""

    def __init__(self, process: "subprocess.Popen[str]", sessions: Sequence[Any]) -> None:
        self._process, self._sessions = process, sessions
        self.updates = 0  # messages that reached a page

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, *, speed: float, pages: Sequence[str] = PAGES) -> AsyncIterator["Soak"]:
        from playwright.async_api import async_playwright

        program = find_browser()
        if program is None:
            raise SystemExit(MISSING)
        command = [sys.executable, "-m", "tests.faults.dashboard_soak", "--serve", str(directory),
                   "--speed", f"{speed:g}"]
        async with AsyncExitStack() as stack:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(_end, process)
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).strip()
            app = App(load_settings({"valkey.url": f"embedded://{directory}"}, environment={}))
            driver = await stack.enter_async_context(async_playwright())
            browser = await driver.chromium.launch(
                executable_path=program, args=[flag for flag in FLAGS if flag != "--headless"]
            )
            stack.push_async_callback(browser.close)
            context = await browser.new_context(base_url=url)
            context.set_default_timeout(60_000)
            first = await context.new_page()
            await first.goto(login_link(app))
            await first.wait_for_selector(".ks-bar-in")
            soak = cls(process, [])
            for path in pages:
                page = await context.new_page()
                page.on("websocket", lambda socket: socket.on("framereceived", soak._updated))
                await page.goto(path)
                session = await context.new_cdp_session(page)
                await session.send("Performance.enable")
                soak._sessions = [*soak._sessions, session]
            await first.close()
            yield soak

    def _updated(self, _: object) -> None:
        self.updates += 1

    async def wait_for_updates(self, count: int, *, most_seconds: float) -> None:
        """Until so many more messages reached the pages."""
        goal = self.updates + count
        async with asyncio.timeout(most_seconds):
            while self.updates < goal:
                await asyncio.sleep(0.05)

    async def held(self) -> Held:
        """What server and pages hold once garbage is gone."""
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGUSR1)
        megabytes, objects = (await asyncio.to_thread(self._process.stdout.readline)).split()
        sums = {"JSHeapUsedSize": 0.0, "Nodes": 0.0, "JSEventListeners": 0.0}
        for session in self._sessions:
            await session.send("HeapProfiler.collectGarbage")
            found = {one["name"]: one["value"] for one in (await session.send("Performance.getMetrics"))["metrics"]}
            for name in sums:
                sums[name] += found[name]
        return Held(self.updates, float(megabytes), int(objects), sums["JSHeapUsedSize"] / 1_000_000,
                    int(sums["Nodes"]), int(sums["JSEventListeners"]))


async def make_things_happen(directory: Path, *, every_seconds: float) -> None:
    """Jobs that nobody knows and keys that come and go, until cancelled, so that every update shows something new."""
    valkey = await connect(f"embedded://{directory}")
    try:
        jobs, number = Jobs(valkey).options(queue="soak"), 0
        while True:
            number += 1
            await jobs.enqueue("soak.unknown", number=number)
            await valkey.set(f"soak:{number % 50}", number, ex=60)
            if number % 200 == 0:
                await valkey.delete("jobs:soak")  # what waits shall not be what grows
            await asyncio.sleep(every_seconds)
    finally:
        await valkey.aclose()


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def soak(minutes: float, speed: float) -> int:
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        directory = Path(made) / "data"
        async with Soak.open(directory, speed=speed) as running:
            happening = asyncio.create_task(make_things_happen(directory, every_seconds=0.2 / speed))
            try:
                await asyncio.sleep(min(700.0, minutes * 60 / 4) if speed == 1 else 2 * KEPT_SAMPLES / speed + 10)
                first = last = await running.held()
                print(f"{'updates':>8} {'server MB':>10} {'objects':>9} {'pages MB':>9} {'nodes':>7} {'listeners':>9}")
                for _ in range(10):
                    print(f"{last.updates:8} {last.server_mb:10.1f} {last.server_objects:9} {last.page_mb:9.2f} "
                          f"{last.page_nodes:7} {last.page_listeners:9}", flush=True)
                    await asyncio.sleep(minutes * 6)
                    last = await running.held()
            finally:
                happening.cancel()
                await asyncio.gather(happening, return_exceptions=True)
    grown = last.growth(first)
    print("\n".join(grown) or f"nothing grew in {last.updates - first.updates} updates")
    return 1 if grown else 0


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--minutes", type=float, default=60.0)
    flags.add_argument("--speed", type=float, default=1.0)
    flags.add_argument("--serve", metavar="DIRECTORY", help=argparse.SUPPRESS)
    given = flags.parse_args()
    if given.serve:
        return serve(given.serve, given.speed)
    raise SystemExit(asyncio.run(soak(given.minutes, given.speed)))


if __name__ == "__main__":
    main()
