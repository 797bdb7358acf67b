"""Starting, hearing, stopping and killing the processes of a fault test."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from ..warm import WARM, exit_code

PROJECT = Path(__file__).parents[2]


class Forked:
    """A program that needed not import first, with what fault tests use of asyncio's own ``Process``."""

    def __init__(self, pid: int, told: int, stdout: asyncio.StreamReader) -> None:
        self.pid, self.stdout = pid, stdout
        self.returncode: int | None = None
        self._told = told
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(told, self._end)

    @classmethod
    async def start(cls, module: str, *arguments: str) -> "Forked":
        """``python -m MODULE ARGUMENTS`` in the project's directory, its output piped."""
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        ours, theirs = os.pipe()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb"))
        try:
            pid, told = await asyncio.to_thread(
                WARM.start, module, arguments, cwd=PROJECT, env=os.environ, out=theirs, err=2
            )
        finally:
            os.close(theirs)
        return cls(pid, told, reader)

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._told)
        self.returncode = exit_code(self._told)
        os.close(self._told)
        self._ended.set()


class Program:
    """A process and what it said so far."""

    def __init__(self, process: Forked | asyncio.subprocess.Process) -> None:
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
        self.started.append(Program(await Forked.start(self.module, *arguments)))
        return self.started[-1]
