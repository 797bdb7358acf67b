"""A process that works for ``touch_drain``: an installation with its crew and its jobs, until it is told to stop.

It says when it could begin, and begins with SIGUSR1, so that several begin together.
"""

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

from bench.load.provider import run, until
from bench.load.touch_crowd import settings_of


async def work(given: argparse.Namespace) -> None:
    from keystead.app import App
    from keystead.telemetry import configure_logging
    from keystead.web.housekeeping import Housekeeping

    settings = settings_of(given.url, given.directory, given.provider_url, given.rate)
    configure_logging(settings.log.level, settings.log.format)
    begin, stop = asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, begin.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with App(settings).running(works=True, public_url=given.provider_url) as running:
        print("ready", flush=True)
        await until(begin, stop)
        working = asyncio.create_task(Housekeeping(running).run())
        await until(stop)
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


if __name__ == "__main__":
    flags = argparse.ArgumentParser(allow_abbrev=False)
    flags.add_argument("--url", required=True)
    flags.add_argument("--directory", type=Path, required=True)
    flags.add_argument("--provider-url", required=True)
    flags.add_argument("--rate", type=float, required=True)
    options = flags.parse_args()
    run(lambda: work(options))
