"""Signs of life from a thread of their own, so that a job that keeps the event loop busy does not look dead."""

import asyncio
import contextlib
import threading
from collections.abc import Sequence

from keystead.engine import Valkey, connect
from keystead.engine.failures import ErrorReply
from keystead.errors import DeclarationError, KeysteadError
from keystead.jobs.models import JobRecord
from keystead.patterns.worklist_worker import Worker as ListWorker
from keystead.telemetry import logger

BEAT_SECONDS = 1.0
JOIN_SECONDS = 15.0

_log = logger("jobs")


class Heartbeat:
    """Beats for some workers each second over a connection of its own, until it is left.

    A thread still needs the interpreter: code that holds its lock for three seconds silences it all the same.
    """

    def __init__(self, valkey: Valkey, workers: Sequence[ListWorker[JobRecord]]) -> None:
        if valkey.address is None:
            raise DeclarationError("a worker needs a client that connect() made: its heartbeat opens another like it")
        self._address, self._settings, self._layout = valkey.address, valkey.settings, valkey.layout
        self._workers = tuple(workers)
        self._thread = threading.Thread(target=self._run, name="keystead-heartbeat", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._beat_until_stopped())

    async def _beat_until_stopped(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        while not self._stop.is_set():
            try:
                valkey = await connect(self._address, settings=self._settings, layout=self._layout)
            except (KeysteadError, ErrorReply) as error:
                _log.warning("heartbeat cannot connect", error=str(error))
                await self._pause()
                continue
            try:
                await self._beat(valkey)
            finally:
                await valkey.aclose()

    async def _beat(self, valkey: Valkey) -> None:
        assert self._stop is not None
        while not self._stop.is_set():
            try:
                # One that hangs must not keep the next from being sent.
                async with asyncio.timeout(BEAT_SECONDS * 2):
                    async with valkey.pipeline(transaction=False) as pipeline:
                        for worker in self._workers:
                            worker.beat(pipeline)
                        await pipeline.execute()
            except (KeysteadError, ErrorReply, TimeoutError) as error:
                _log.warning("heartbeat failed", error=str(error) or "no answer")
            await self._pause()

    async def _pause(self) -> None:
        assert self._stop is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                await self._stop.wait()
