"""Starting, hearing, stopping and killing the processes of a fault test."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]


class Program:
    """A process and what it said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[list[str]] = []
        self._heard = asyncio.Condition()
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._heard:
                self.said.append(line.decode().split())
                self._heard.notify_all()

    def words(self, word: str) -> list[list[str]]:
        return [said for said in self.said if said[0] == word]

    async def hears(self, word: str, times: int = 1, seconds: float = 60.0) -> list[str]:
        """The ``times``-th line that begins with ``word``."""
        async with asyncio.timeout(seconds), self._heard:
            await self._heard.wait_for(lambda: len(self.words(word)) >= times)
        return self.words(word)[times - 1]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        await self.process.wait()
        await self._listening


@contextlib.asynccontextmanager
async def programs(module: str) -> AsyncIterator["Starter"]:
    """Start programs with ``await start(*arguments)``; all are killed when the block ends."""
    starter = Starter(module)
    try:
        yield starter
    finally:
        for program in starter.started:
            await program.kill()


class Starter:
    """Starts programs and remembers them."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.started: list[Program] = []

    async def __call__(self, *arguments: str) -> Program:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self.module, *arguments, cwd=PROJECT, stdout=asyncio.subprocess.PIPE
        )
        self.started.append(Program(process))
        return self.started[-1]
