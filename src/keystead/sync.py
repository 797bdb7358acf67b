"""Jobs for programs without an event loop: Django views, scripts, shells.

One thread with a loop of its own does the talking; any number of threads may use a client at once. A process that
forks gets a connection of its own on first use.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from keystead import jobs as rooms
from keystead.clock import SystemClock
from keystead.engine import Valkey, connect, sync_clock
from keystead.errors import Invalid
from keystead.jobs.client import Wishes
from keystead.jobs.models import JobState

P = ParamSpec("P")
T = TypeVar("T")

CONNECT_SECONDS = 30.0


class _Line:
    """The thread that talks to the server, started on first use and after a fork."""

    def __init__(self, url: str, replicas: int) -> None:
        self._url, self._replicas = url, replicas
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._valkey: Valkey | None = None
        self.clock = SystemClock()

    def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Wait for an answer. The caller must have asked for ``valkey`` before, so the line is open."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()

    @property
    def valkey(self) -> Valkey:
        with self._lock:
            if self._valkey is None or self._pid != os.getpid():
                self._open()
            assert self._valkey is not None
            return self._valkey

    def _open(self) -> None:
        # What a parent process opened is the parent's: its thread does not live here.
        loop = asyncio.new_event_loop()
        self._pid, self._loop, self._valkey = os.getpid(), loop, None
        self._thread = threading.Thread(target=loop.run_forever, name="keystead-sync", daemon=True)
        self._thread.start()
        try:
            self._valkey = asyncio.run_coroutine_threadsafe(self._connect(), loop).result(CONNECT_SECONDS)
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise

    async def _connect(self) -> Valkey:
        valkey = await connect(self._url, replicas=self._replicas)
        await sync_clock(valkey, self.clock)
        return valkey

    def close(self) -> None:
        with self._lock:
            if self._valkey is not None and self._loop is not None and self._pid == os.getpid():
                self.ask(self._valkey.aclose())
                self._loop.call_soon_threadsafe(self._loop.stop)
                if self._thread is not None:
                    self._thread.join(CONNECT_SECONDS)
            self._valkey = None


class Jobs:
    """``keystead.jobs.Jobs`` without ``await``. Connects on first use; ``close`` it, or use it as a block."""

    def __init__(self, url: str, book: rooms.JobBook | None = None, *, replicas: int = 0) -> None:
        self._line = _Line(url, replicas)
        self._book = book
        self._wishes: Wishes = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next use opens another."""
        self._line.close()

    def options(self, **wishes: Unpack[Wishes]) -> "Jobs":
        """The same client with wishes for what it enqueues; see ``keystead.jobs.Jobs.options``, without ``on``."""
        if "on" in wishes:
            raise Invalid("a pipeline belongs to an event loop: use keystead.jobs for jobs inside a transaction")
        changed: Jobs = object.__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed._wishes = {**self._wishes, **wishes}
        return changed

    @property
    def _jobs(self) -> rooms.Jobs:
        return rooms.Jobs(self._line.valkey, self._book, clock=self._line.clock).options(**self._wishes)

    @overload
    def enqueue(self, work: rooms.Job[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> "JobHandle": ...
    @overload
    def enqueue(self, work: str, /, **kwargs: Any) -> "JobHandle": ...
    def enqueue(self, work: Any, /, *args: Any, **kwargs: Any) -> "JobHandle":
        """Queue one job. Once this returns, it will run at least once or be seen as failed."""
        jobs = self._jobs

        async def ask() -> rooms.JobHandle:
            return await jobs.enqueue(work, *args, **kwargs)

        return JobHandle(self._line, self._line.ask(ask()))

    def enqueue_many(self, work: rooms.Job[..., Any] | str, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """Queue one job for each set of arguments and return their uids."""
        return self._line.ask(self._jobs.enqueue_many(work, many))

    def enqueue_batch(
        self, calls: Sequence[tuple[rooms.Job[..., Any] | str, Mapping[str, Any]]], *,
        then: rooms.JobRef | None = None,
    ) -> str:
        """Queue jobs that belong together, all or none, and return the uid of the batch."""
        return self._line.ask(self._jobs.enqueue_batch(calls, then=then)).uid


class JobHandle:
    """A job that was queued."""

    def __init__(self, line: _Line, handle: rooms.JobHandle) -> None:
        self._line = line
        self._handle = handle

    @property
    def uid(self) -> str:
        return self._handle.uid

    @property
    def is_new(self) -> bool:
        """False when a unique key gave the job that already had it."""
        return self._handle.is_new

    def state(self) -> JobState | None:
        """Its state; None for a job that is not kept, or was forgotten."""
        return self._line.ask(self._handle.state())

    def wait(self, timeout_seconds: float) -> JobState:
        """Its state once it has ended. Raises ``TimeoutError``, and ``NotFound`` for a job without a state."""
        return self._line.ask(self._handle.wait(timeout_seconds))

    def cancel(self) -> bool:
        """Ask that it does not run, or stops; says false when it is known to have ended."""
        return self._line.ask(self._handle.cancel())
