"""The town beside ``keystead up --demo``: a process of its own that knows no more than an address and a key."""

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from keystead.cli.output import note
from keystead.jobs.processes import PARENT

if TYPE_CHECKING:
    from keystead.app import Running
    from keystead.web import Beside, Ready

KEY = "KEYSTEAD_DEMO_KEY"
KEY_NAME = "demo"
KEY_SECONDS = 86_400.0
STOP_SECONDS = 5.0


def town(seed: int | None = None) -> "Beside":
    """What to run beside the server: the child is started when requests are answered and ends with us."""

    async def live(running: "Running", ready: "Ready") -> None:
        key = await running.admin_keys.create(KEY_NAME, ("*",), lasts_seconds=KEY_SECONDS)
        command = [sys.executable, "-m", "keystead.cli", "demo", "--url", ready.url, "--town"]
        command += ["--seed", str(seed)] if seed is not None else []
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, KEY: key.text, PARENT: str(os.getpid())}, stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            code = await process.wait()
            note(f"the town has left (exit code {code}); everything else goes on")
            await asyncio.Event().wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STOP_SECONDS):
                        await process.wait()
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            with contextlib.suppress(Exception):
                await running.admin_keys.revoke(key.id)

    return live
