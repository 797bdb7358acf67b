"""Running one job: the function found in the book, its arguments, middleware, time limit, and what it raised."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any

from keystead.errors import Invalid
from keystead.jobs.book import Job
from keystead.jobs.context import RunningJob, running
from keystead.jobs.retry import GiveUp

Call = Callable[[RunningJob], Awaitable[Any]]
Middleware = Callable[[RunningJob, Call], Awaitable[Any]]

ERROR_CHARACTERS = 1000


class TooLong(Exception):
    """A try took longer than its job allows."""


class Execution:
    """Runs jobs: async ones here, others in threads, all inside the middleware, the first of which is outermost."""

    def __init__(self, threads: int, middleware: Sequence[Middleware] = ()) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="keystead-job")
        self._free_threads = asyncio.Semaphore(threads)
        self.has_middleware = bool(middleware)
        self._middleware = tuple(middleware)

    async def run(self, job: Job[..., Any], context: RunningJob, timeout_seconds: float) -> Any:
        """What the job returns. Raises what it raises, ``TooLong`` after its time, ``GiveUp`` for wrong arguments."""
        if job.is_async:
            return await self._run(job, context, timeout_seconds)
        async with self._free_threads:  # to wait for a thread is no part of its time
            return await self._run(job, context, timeout_seconds)

    async def _run(self, job: Job[..., Any], context: RunningJob, timeout_seconds: float) -> Any:
        innermost: Call = partial(self._call, job)
        call: Call = reduce(_inside, reversed(self._middleware), innermost)
        running.set(context)
        try:
            if not timeout_seconds:
                return await call(context)
            limit = asyncio.timeout(timeout_seconds)
            try:
                async with limit:
                    return await call(context)
            except TimeoutError:
                if limit.expired():
                    raise TooLong(f"took longer than {timeout_seconds:g} s") from None
                raise
        except TypeError:
            try:
                job.check(context.record.kwargs)
            except Invalid as error:
                raise GiveUp(str(error)) from None
            raise

    async def _call(self, job: Job[..., Any], context: RunningJob) -> Any:
        kwargs = context.record.kwargs
        if job.is_async:
            return await job.function(**kwargs)
        inside = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(inside.run, partial(job.function, **kwargs))
        )

    def close(self) -> None:
        """Threads that are still busy are not waited for: what they run is given back or was timed out."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _inside(call: Call, middleware: Middleware) -> Call:
    return lambda context: middleware(context, call)


def told(error: BaseException) -> str:
    """An exception in one line of bounded length, as dead letters and states show it."""
    try:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    except Exception:  # it was written by whoever wrote the job
        text = f"{type(error).__name__} (it cannot be shown as text)"
    # Names of files may hold bytes that are no text and could not be stored.
    line = " ".join(text.encode(errors="replace").decode().split())
    return line if len(line) <= ERROR_CHARACTERS else line[: ERROR_CHARACTERS - 1] + "…"
