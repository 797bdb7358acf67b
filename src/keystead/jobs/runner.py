"""Running what was taken, and deciding what becomes of it: acknowledged, tried again, given up, called off."""

import asyncio
import contextlib
from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.jobs.book import Job, JobBook, Rate
from keystead.jobs.context import RunningJob, running
from keystead.jobs.done import say_done
from keystead.jobs.ended import EndedNotes
from keystead.jobs.endings import NO_OPTIONS, Ending
from keystead.jobs.execution import Execution, told
from keystead.jobs.models import JobOptions, JobRecord
from keystead.jobs.progress import telling
from keystead.jobs.rates import reserve_start
from keystead.jobs.records import MOST_BYTES
from keystead.jobs.retry import GiveUp, RetryLater
from keystead.jobs.station import PAUSE_SECONDS, Station
from keystead.jobs.upkeep import Tally
from keystead.patterns.worklist_items import Item
from keystead.scrubbing import failure_told, scrubbed
from keystead.telemetry import Durations, logger
from keystead.tracing import is_listening, span

ASK_AGAIN_SECONDS = 3600.0  # after all starts of a rate are taken for as far ahead as they are given out

JOB_SECONDS = Durations(
    "job_seconds", "tries of jobs, by job and how they ended: done, failed, put_off or stopped",
    labels=("name", "outcome"),
)

_log = logger("jobs")


class Runner:
    """Runs jobs of a book. ``allowed``: numbers of categories, None: all. ``cancelled``: uids that are not to run."""

    def __init__(
        self, valkey: Valkey, clock: Clock, book: JobBook, execution: Execution, *, worker: str,
        allowed: frozenset[int] | None, at_most_once: bool, is_stopping: Callable[[], bool], in_totals: bool = True,
    ) -> None:
        self.tally = Tally()
        self.ended = EndedNotes(worker, clock, only_bad=not in_totals)
        self.cancelled: set[str] = set()
        self._valkey, self._clock, self._book, self._execution = valkey, clock, book, execution
        self._worker = worker
        self._allowed = allowed
        self._at_most_once = at_most_once
        self._is_stopping = is_stopping
        self._plain = {job.name: job for job in book if self._is_plain(job)}

    def _is_plain(self, job: Job[..., Any]) -> bool:
        return (
            job.is_async and not (job.timeout_seconds or job.rate or job.says_done or job.progress)
            and (self._allowed is None or job.category.id in self._allowed)
            and not self._execution.has_middleware and not self._at_most_once
        )

    async def run(self, station: Station, item: Item[JobRecord]) -> None:
        """Run one job and settle it. Only a cancellation of the worker itself comes out of here."""
        record, began = item.value, perf_counter()
        try:
            job = self._plain.get(record.name)
            if (job is not None and record.options is None and record.uid not in self.cancelled
                    and len(item.raw) <= MOST_BYTES):
                await self._run_plain(station, item, job, began)
            else:
                await self._run_with_care(station, item)
        except asyncio.CancelledError:
            # At whatever it waited. What was settled already is not in purgatory any more: then nothing changes.
            if record.uid not in self.cancelled:
                # We are to end, not the job: another worker runs it from its beginning.
                await asyncio.shield(station.put_back([item]))
                raise
            ending = Ending("cancelled", attempts=record.attempt + 1, seconds=perf_counter() - began)
            await self._end(station, item, self._book.get(record.name), ending)
        except Exception as error:  # of settling: what a job raises is dealt with below
            _log.error("job cannot be settled", job=record.name[:200], uid=record.uid[:200], exc_info=error)
            self.tally.failed += 1
            with contextlib.suppress(ErrorReply):  # then it stays in purgatory, for whoever comes after us
                await station.bury(item, f"it ended, and this could not be settled: {told(error)}")
                reason = f"it could not be settled: {failure_told(error)}"
                ending = Ending("failed", attempts=record.attempt + 1, reason=reason)
                self.ended.note(record, station.queue.name, ending)

    async def _run_plain(self, station: Station, item: Item[JobRecord], job: Job[..., Any], began: float) -> None:
        """Nothing to do but call a function: the path that nearly all jobs take."""
        record, queue = item.value, station.queue.name
        running.set(RunningJob(record, record.uid, queue, self._is_stopping, self._valkey, self._clock))
        try:
            if is_listening():
                with span(f"job {job.name}", parent=record.trace, kind="consumer", uid=record.uid):
                    await job.function(**record.kwargs)
            else:
                await job.function(**record.kwargs)
        except TypeError as error:
            # Wrong arguments look like any other TypeError; finding out costs, so only now.
            seconds = perf_counter() - began
            JOB_SECONDS.observe(seconds, job.name, "failed")
            await self._failed(station, item, job, _or_give_up(job, record, error), seconds)
        except BaseException as error:
            seconds = perf_counter() - began
            JOB_SECONDS.observe(seconds, job.name, _outcome(error))
            await self._failed(station, item, job, error, seconds)
        else:
            seconds = perf_counter() - began
            JOB_SECONDS.observe(seconds, job.name, "done")
            self.tally.done += 1
            self.ended.succeeded((record, queue, began, seconds))
            station.finish(item)

    async def _run_with_care(self, station: Station, item: Item[JobRecord]) -> None:
        record = item.value
        options, job = record.options or NO_OPTIONS, self._book.get(record.name)
        if len(item.raw) > MOST_BYTES:
            await self._refuse(station, item, f"takes {len(item.raw):,} bytes, at most {MOST_BYTES:,} are run")
        elif problem := station.problem_of(record):
            _log.error("job refused", job=record.name[:200], error=problem)
            self.tally.failed += 1
            await station.bury(item, problem)
            ending = Ending("failed", attempts=record.attempt, reason=scrubbed(problem))
            self.ended.note(record, station.queue.name, ending)
        elif job is None:
            await self._refuse(station, item, f"no job is named {record.name[:200]}")
        elif self._allowed is not None and job.category.id not in self._allowed:
            await station.sort(item, job.category.id)
        elif record.uid in self.cancelled and await self._is_called_off(station, record.uid):
            await self._end(station, item, job, Ending("cancelled", attempts=record.attempt))
        elif options.after and (culprit := await station.culprit(record.uid)):
            await self._refuse(station, item, f"a job it waited for did not succeed: {culprit}")
        elif job.rate and not record.slot and not await self._may_begin(station, item, job, job.rate):
            pass  # it has been put off
        else:
            await self._run_kept(station, item, job)

    async def _is_called_off(self, station: Station, uid: str) -> bool:
        """What we heard may be from before: a dead letter that is tried again is called off no more."""
        if await station.is_called_off(uid):
            return True
        self.cancelled.discard(uid)
        return False

    async def _may_begin(self, station: Station, item: Item[JobRecord], job: Job[..., Any], rate: Rate) -> bool:
        """Whether its rate lets it begin now; if not it waits for its start, or to ask for one again."""
        now = self._clock.now()
        try:
            start = await reserve_start(self._valkey, job.name, rate, now)
        except Unavailable:
            await station.put_off(item, now + PAUSE_SECONDS)
            return False
        if start is None:
            await station.put_off(item, now + ASK_AGAIN_SECONDS)
            return False
        if start > self._clock.now():
            await station.put_off(item, start, slot=start)
            return False
        return True

    async def _run_kept(self, station: Station, item: Item[JobRecord], job: Job[..., Any]) -> None:
        record = item.value
        options = record.options or NO_OPTIONS
        if options.keep_seconds:
            with contextlib.suppress(Unavailable):
                await station.queue.job(record.uid).update(
                    self._valkey, name=record.name, queued_at=record.queued_at, status="running",
                    started_at=self._clock.now(), worker=self._worker, attempts=record.attempt + 1,
                )
        context = RunningJob(
            record, record.uid, station.queue.name, self._is_stopping, self._valkey, self._clock
        )
        if self._at_most_once:
            return await self._run_once(station, item, job, context)
        began = perf_counter()
        try:
            result = await self._told_of(context, job, options)
            text = _result(result, options)
        except BaseException as error:
            await self._failed(station, item, job, error, perf_counter() - began)
        else:
            ending = Ending("succeeded", result=text, attempts=record.attempt + 1, follow=options.on_success,
                            seconds=perf_counter() - began)
            await self._end(station, item, job, ending)

    async def _told_of(self, context: RunningJob, job: Job[..., Any], options: JobOptions) -> Any:
        """Run it, measured, as part of the trace it was queued in."""
        began, outcome = perf_counter(), "done"
        try:
            with span(f"job {job.name}", parent=context.record.trace, kind="consumer", uid=context.uid):
                return await self._watched(context, job, options)
        except BaseException as error:
            outcome = _outcome(error)
            raise
        finally:
            JOB_SECONDS.observe(perf_counter() - began, job.name, outcome)

    async def _watched(self, context: RunningJob, job: Job[..., Any], options: JobOptions) -> Any:
        """Run it, and tell of begin and end if someone may watch."""
        limit = options.timeout_seconds or job.timeout_seconds
        if not options.progress:
            return await self._execution.run(job, context, limit)
        tries = options.tries or job.retry.tries

        def will_retry(error: Exception) -> bool:
            return _is_worth(job, error) and context.attempt < tries

        async with telling(self._valkey, options.progress, self._clock, will_retry=will_retry) as progress:
            async def tell(message: str, at: float | None, of: float | None) -> None:
                with contextlib.suppress(Unavailable):
                    await progress.progress(self._valkey, message, at, of)

            context.tells, context.loop = tell, asyncio.get_running_loop()
            return await self._execution.run(job, context, limit)
        return None  # it bounced: it has put itself back

    async def _run_once(
        self, station: Station, item: Item[JobRecord], job: Job[..., Any], context: RunningJob
    ) -> None:
        """At most once: forgotten before it runs, so that nothing can run it again; it is no dead letter either."""
        if not await station.forget(item):
            return
        options, began = item.value.options or NO_OPTIONS, perf_counter()
        try:
            result = await self._told_of(context, job, options)
            ending = Ending("succeeded", result=_result(result, options), follow=options.on_success,
                            seconds=perf_counter() - began)
            self.tally.done += 1
        except Exception as error:
            ending = Ending("failed", error=told(error), follow=options.on_failure, seconds=perf_counter() - began,
                            reason=failure_told(error))
            self.tally.failed += 1
            _log.error("job failed", job=job.name, uid=item.value.uid, exc_info=error)
        except asyncio.CancelledError:
            if item.value.uid not in self.cancelled:
                raise  # we are to end: then it is lost
            ending = Ending("cancelled", seconds=perf_counter() - began)
            await self._was_called_off(station, item.value.uid)
        self.ended.note(item.value, station.queue.name, ending)
        if item.value.options is not None:
            await station.settle_forgotten(item.value, ending)

    # -- what becomes of it -----------------------------------------------------------------------------------------

    async def _failed(
        self, station: Station, item: Item[JobRecord], job: Job[..., Any], error: BaseException, seconds: float
    ) -> None:
        record = item.value
        options, attempt, now = record.options or NO_OPTIONS, record.attempt + 1, self._clock.now()
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if record.uid in self.cancelled or (task is not None and task.cancelling()):
                raise error  # not the job's own doing
        if isinstance(error, RetryLater):
            await station.put_off(item, now + error.delay_seconds, told(error) if error.counts else "")
            self.tally.retried += 1
            return None
        tries = options.tries or job.retry.tries
        text = told(error)
        if _is_worth(job, error) and attempt < tries:
            _log.warning("job failed, will be tried again", job=job.name, uid=record.uid, attempt=attempt,
                         error=failure_told(error))
            await station.put_off(item, now + job.retry.pause_seconds(attempt), text)
            self.tally.retried += 1
            return None
        _log.error("job failed", job=job.name, uid=record.uid, attempt=attempt, exc_info=error)
        ending = Ending("failed", error=text, attempts=attempt, follow=options.on_failure, seconds=seconds,
                        reason=failure_told(error))
        return await self._end(station, item, job, ending)

    async def _refuse(self, station: Station, item: Item[JobRecord], error: str) -> None:
        """Give up what cannot be run at all. Jobs that wait for it hear of it like of any failure."""
        _log.error("job refused", job=item.value.name[:200], uid=item.value.uid, error=error)
        follow = (item.value.options or NO_OPTIONS).on_failure
        ending = Ending("failed", error=error, attempts=item.value.attempt, follow=follow, reason=scrubbed(error))
        await self._end(station, item, self._book.get(item.value.name), ending)

    async def _end(self, station: Station, item: Item[JobRecord], job: Job[..., Any] | None, ending: Ending) -> None:
        record = item.value
        ours = await station.settle(item, ending)
        if ours:
            self.ended.note(record, station.queue.name, ending)
        if ending.status == "succeeded":
            self.tally.done += 1
        elif ending.status == "failed":
            self.tally.failed += 1
        else:
            await self._was_called_off(station, record.uid)
        told_as = (record.options or NO_OPTIONS).done or (job and job.says_done and record.kwargs.get("job_uid"))
        if ours and isinstance(told_as, str) and told_as:
            # Whoever waits also looks at the state, so a message that is lost costs a second at most.
            with contextlib.suppress(Unavailable):
                await say_done(self._valkey, told_as)

    async def _was_called_off(self, station: Station, uid: str) -> None:
        self.cancelled.discard(uid)
        with contextlib.suppress(Unavailable):
            await station.queue.cancelled.remove(self._valkey, uid)


def _result(result: object, options: JobOptions) -> str:
    """What is kept of a result: JSON text."""
    return msgspec.json.encode(result).decode() if options.keep_seconds and result is not None else ""


def _is_worth(job: Job[..., Any], error: BaseException) -> bool:
    """Whether another try could help."""
    return isinstance(error, job.retry.only) and not isinstance(error, GiveUp)


def _outcome(error: BaseException) -> str:
    """How a try ended that did not go well, in a word for a label."""
    return "put_off" if isinstance(error, RetryLater) else "failed" if isinstance(error, Exception) else "stopped"


def _or_give_up(job: Job[..., Any], record: JobRecord, error: TypeError) -> Exception:
    try:
        job.signature.bind(**record.kwargs)
    except TypeError as wrong:
        return GiveUp(f"wrong arguments: {wrong}; it takes {job.signature}")
    return error
