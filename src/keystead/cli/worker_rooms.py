"""``keystead worker`` without modules: everything that an installation has to work on, without answering HTTP."""

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from keystead.cli.modules import users_program
from keystead.cli.output import note
from keystead.errors import Unavailable

if TYPE_CHECKING:
    from keystead.settings import Settings


async def work(settings: "Settings", *, grace_seconds: float) -> None:
    """Run the rooms' jobs, calendar and crew, and the program's jobs, until SIGTERM, SIGINT or the end of a parent.

    A second signal gives back at once what runs.
    """
    from keystead.app import App
    from keystead.engine import parse
    from keystead.jobs.processes import stop_without_parent
    from keystead.web.housekeeping import Housekeeping
    from keystead.web.links import read_address

    app = App(settings, users_program(settings.program.modules))
    reached_at = ""
    with contextlib.suppress(Unavailable):  # messages carry links to whoever answers, if that is known here
        reached_at = read_address(app.data_directory)
    async with app.running(works=True, answers=False, public_url=reached_at) as running:
        keeping = Housekeeping(running, grace_seconds=grace_seconds)
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def asked() -> None:
            if stop.is_set():
                keeping.hurry()
            stop.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, asked)
        stop_without_parent(asked)
        program = f", {len(running.program)} of the program" if len(running.program) else ""
        note(f"working on {parse(settings.valkey.url).display}: {len(running.book)} kinds of jobs of the rooms"
             f"{program}; the world reaches us at {running.switchboard.ground.public_url}")
        try:
            await _until(stop, asyncio.create_task(keeping.run()))
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
    note("worker stopped")


async def _until(stop: asyncio.Event, working: asyncio.Task[None]) -> None:
    """Let it work until told to stop; what ends it before that is raised."""
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
