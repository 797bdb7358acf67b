"""One queue of one worker: taking jobs into its purgatory, and settling what became of them."""

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import DeclarationError, Invalid, ReplyLost, Unavailable
from keystead.jobs.callbacks import check_callback
from keystead.jobs.endings import NO_OPTIONS, Ending
from keystead.jobs.keys import DONE, OPEN_SECONDS, PROGRESS_EVENTS, Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.records import changed, new_uid
from keystead.keys import KeyReference, ListRef, Undecodable
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec, Item, TakenItems
from keystead.telemetry import counts, logger

SETTLE = Script("keystead.jobs", "scripts/settle.lua")
RETRY = Script("keystead.jobs", "scripts/retry.lua")

WAIT_SECONDS = 1.0  # below the time that the sign of life sent along counts
PAUSE_SECONDS = 0.5
LATE_SECONDS = 2.0  # by then the server has noticed that a connection is gone, and delivers nothing more over it
GIVE_BACK_SECONDS = 5.0
MOST_ACKNOWLEDGED = 500

T = TypeVar("T")

counts.describe("jobs_lost_leases", "jobs that ended here after another worker had taken them over")

_log = logger("jobs")
_letters = DeadLetterCodec()


class Station:
    """Takes, waits and settles. The worker notes in ``running`` what it runs."""

    def __init__(self, valkey: Valkey, clock: Clock, queue: Queue, worker: str, categories: Sequence[int]) -> None:
        self.queue = queue
        self.hands = queue.work.worker(worker)
        self.running: dict[str, Item[JobRecord]] = {}
        self._valkey, self._clock = valkey, clock
        self._lists = [*(queue.category(category) for category in categories), queue.work.queue]
        self._waiting: dict[bytes, asyncio.Task[None]] = {}
        self._finished: list[Item[JobRecord]] = []
        self._finishing: list[Item[JobRecord]] = []
        self._something_finished = asyncio.Event()
        self._all_acknowledged = asyncio.Event()
        self._all_acknowledged.set()
        self._look_at: list[float] = []  # when to look for items that a lost reply left in purgatory
        self.stir = asyncio.Event()
        self.is_idle = False  # the worker has nothing to do here but to wait
        self.something_put_off = asyncio.Event()

    # -- taking -----------------------------------------------------------------------------------------------------

    async def take(self, most: int, *, holds_nothing: bool = True) -> TakenItems[JobRecord]:
        """Up to ``most`` of the oldest jobs. Raises ``Unavailable`` while the server is away.

        ``holds_nothing``: the worker holds nothing of other queues, so one on its last try may come, to be alone.
        """
        if self._look_at and self._look_at[0] <= time.monotonic():
            found = await self._left_behind(most)
            if found.items:
                return found
        try:
            return await self.hands.take_from(
                self._valkey, self._lists, self.queue.paused, most, now=self._clock.now(), leftovers_first=False,
                holds_nothing=holds_nothing,
            )
        except Unavailable:
            self.look_for_leftovers()
            raise

    def look_for_leftovers(self) -> None:
        """After a lost reply: what it told of lies in purgatory, and nobody else will look there while we live."""
        now = time.monotonic()
        self._look_at = [now, now + LATE_SECONDS]

    async def _left_behind(self, most: int) -> TakenItems[JobRecord]:
        # A wait that is under way may bring an item that is not ours to start twice.
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)
        raws = await self._valkey.run(
            ("LRANGE", self.hands.purgatory.name(self._valkey.layout), 0, -1), list, repeat=True
        )
        known = Counter(item.raw for item in (*self.running.values(), *self._finished, *self._finishing))
        left: list[bytes] = []
        for raw in raws:
            if known[raw]:
                known[raw] -= 1
            else:
                left.append(raw)
        if len(left) <= most:
            del self._look_at[0]
        return TakenItems([item for raw in left[:most] if (item := await self._opened(raw)) is not None], True)

    async def _opened(self, raw: bytes) -> Item[JobRecord] | None:
        try:
            return Item(self.queue.work.queue_key.codec.decode(raw), raw)
        except Undecodable as error:
            await self.bury(_unread(raw), f"does not decode: {error.reason}")
            return None

    def wait(self, group: asyncio.TaskGroup, arrived: Callable[[Item[JobRecord]], bool]) -> None:
        """Wait on every list, each on a connection of its own. ``arrived`` says whether it could start the job."""
        for place in self._lists:
            name = place.name(self._valkey.layout)
            if name not in self._waiting:
                self._waiting[name] = group.create_task(self._wait_on(place, name, arrived))

    async def _wait_on(
        self, place: ListRef[JobRecord], name: bytes, arrived: Callable[[Item[JobRecord]], bool]
    ) -> None:
        layout = self._valkey.layout
        purgatory, poison = self.hands.purgatory.name(layout), self.hands.poison.name(layout)
        try:
            raw = None
            while raw is None:
                # In one write: the sign of life is on the server before a job can arrive. What is asked behind the wait
                # is answered after it: since it began the queue may have been paused, or a dead worker's jobs taken
                # over.
                async with self._valkey.pipeline(transaction=False) as pipeline:
                    self.hands.beat(pipeline)
                    moved = pipeline.run(("BLMOVE", name, purgatory, "LEFT", "RIGHT", WAIT_SECONDS), _raw)
                    closed = pipeline.run(("EXISTS", self.queue.paused.name(layout)), bool)
                    suspects = pipeline.run(("EXISTS", poison), bool)
                    await pipeline.execute()
                raw = await moved
                if raw is None and (self._look_at or not self.is_idle):
                    return
            if await closed or (await suspects and await self.hands.is_suspect(self._valkey, raw)):
                await self.put_back([_unread(raw)])
            else:
                item = await self._opened(raw)
                if item is not None and not arrived(item):
                    await self.put_back([item])
        except (Unavailable, ErrorReply):
            self.look_for_leftovers()
            await asyncio.sleep(PAUSE_SECONDS)
        finally:
            del self._waiting[name]
            self.stir.set()

    async def end_waiting(self) -> None:
        """Let every wait come to its end, so that none brings a job that nobody starts."""
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)

    # -- settling ---------------------------------------------------------------------------------------------------

    def finish(self, item: Item[JobRecord]) -> None:
        """A job without options succeeded; it is acknowledged together with others, as soon as can be."""
        if not self._finished:  # the first says it for those that follow
            self._something_finished.set()
            self._all_acknowledged.clear()
        self._finished.append(item)

    async def all_acknowledged(self) -> None:
        """Wait until nothing that finished is left to be told to the server."""
        await self._all_acknowledged.wait()

    async def acknowledge(self) -> None:
        """Acknowledge what finished, for ever; while one call is under way others gather."""
        while True:
            await self._something_finished.wait()
            self._something_finished.clear()
            while self._finished:
                self._finishing = self._finished[:MOST_ACKNOWLEDGED]
                del self._finished[: len(self._finishing)]
                await self._persist(self._finish)
                self._finishing = []
            self._all_acknowledged.set()

    async def _finish(self) -> None:
        try:
            done = await self.hands.finish(self._valkey, self._finishing)
        except ReplyLost:
            # Repeating is harmless for records that cannot have a twin. Others, if they are left, run once more.
            self._finishing = [item for item in self._finishing if item.value.uid]
            self.look_for_leftovers()
            raise
        if done.lost:
            counts.add("jobs_lost_leases", len(done.lost))

    async def forget(self, item: Item[JobRecord]) -> bool:
        """Acknowledge a job before it runs; says false unless it surely was ours."""

        async def ask() -> bool:
            return (await self.hands.finish(self._valkey, [item])).count == 1

        return await self._surely(ask, when_unsure=False)

    def problem_of(self, record: JobRecord) -> str:
        """Why a job with options cannot be run: another program wrote something into them that is no name of a key, or
        a callback that cannot be called."""
        options = record.options or NO_OPTIONS
        try:
            self._own_keys(record)
            for uid in filter(None, (options.progress, options.done)):
                PROGRESS_EVENTS.at(uid)
                DONE.at(uid)
            for callback in filter(None, (options.on_success, options.on_failure)):
                check_callback(callback)
        except (DeclarationError, Invalid) as error:
            return f"its options cannot be used: {error}"
        return ""

    def _own_keys(self, record: JobRecord) -> tuple[KeyReference, ...]:
        """What belongs to one job; where it has no such thing, a key that is not touched."""
        options, queue = record.options or NO_OPTIONS, self.queue
        uid = record.uid if options.keep_seconds > 0 else "-"
        return (queue.job(uid), queue.dependents(uid), queue.batch(options.batch or "-"),
                queue.unique(options.unique or "-"))

    async def culprit(self, uid: str) -> str:
        """Of a job that waited for others: which one did not succeed; empty when all did."""
        found: bytes | None = await self._persist(lambda: self.queue.waiting.get(self._valkey, f"failed:{uid}"))
        return (found or b"").decode(errors="replace")

    async def is_called_off(self, uid: str) -> bool:
        """Whether it is written down that this job is not to run."""
        name = self.queue.cancelled.name(self._valkey.layout)
        found: bytes | None = await self._persist(lambda: self._valkey.run(("ZSCORE", name, uid), _raw, repeat=True))
        return found is not None

    async def settle(self, item: Item[JobRecord], ending: Ending) -> bool:
        """End a job and do all that follows from it, in one step; says false when it was no longer ours."""
        letter = b""
        if ending.status == "failed":
            letter = _letters.encode(DeadLetter(item.raw, ending.error, self._clock.now(), ending.attempts))
        ask = self._settling(self.hands.purgatory, item.raw, item.value, ending, letter)
        ours = await self._surely(ask, item.value)
        if not ours:
            counts.add("jobs_lost_leases")
        return ours

    async def settle_given_up(self) -> list[tuple[JobRecord, Ending]]:
        """End the jobs that were there at too many crashes: whoever adopted them could not know what follows.

        Returns those that ended by this, as far as they are jobs.
        """
        given_up, ended = self.queue.given_up, list[tuple[JobRecord, Ending]]()
        for raw in await self._valkey.run(("LRANGE", given_up.name(self._valkey.layout), 0, 99), list, repeat=True):
            letter = _letters.decode(raw)
            try:
                record = self.queue.work.queue_key.codec.decode(letter.raw)
            except Undecodable:
                record = _unread(letter.raw).value
            known = record
            if self.problem_of(record):
                record = _unread(letter.raw).value
            follow = (record.options or NO_OPTIONS).on_failure
            ending = Ending("failed", error=letter.error, attempts=letter.attempts, follow=follow, reason=letter.error)
            if await self._surely(self._settling(given_up, raw, record, ending, raw)) and known.name:
                ended.append((known, ending))
        return ended

    async def settle_forgotten(self, record: JobRecord, ending: Ending) -> None:
        """Do what follows from the end of a job that was forgotten before it ran. Asked once: it follows once or not
        at all."""
        with contextlib.suppress(Unavailable):
            await self._settling(self.hands.purgatory, b"", record, ending, b"")()

    def _settling(
        self, place: KeyReference, raw: bytes, record: JobRecord, ending: Ending, letter: bytes
    ) -> Callable[[], Awaitable[bool]]:
        queue, now, options = self.queue, self._clock.now(), record.options or NO_OPTIONS
        arguments = (
            raw, record.uid, ending.status, letter, ending.callback(record, now),
            math.ceil(min(options.keep_seconds, OPEN_SECONDS) * 1000), ending.state(record, self.hands.name, now),
            int(bool(options.batch)), int(bool(options.unique)),
        )
        keys = (place, self.hands.poison, queue.work.queue, queue.work.dead, queue.waiting, *self._own_keys(record),
                queue.delayed)
        return lambda: SETTLE(self._valkey, keys=keys, args=arguments, decode=bool)

    async def put_off(self, item: Item[JobRecord], due: float, error: str = "", *, slot: float = 0.0) -> bool:
        """Let a job run later: after a failed try, whose ``error`` is counted, or at a reserved start."""
        record = item.value
        attempt = record.attempt + bool(error)
        raw = changed(item.raw, uid=record.uid or new_uid(), attempt=attempt, slot=slot, due_at=due)
        kept = record.options is not None and record.options.keep_seconds > 0
        job = self._own_keys(record)[0]
        ours = await self._surely(lambda: RETRY(
            self._valkey, keys=(self.hands.purgatory, self.hands.poison, self.queue.delayed, job),
            args=(item.raw, raw, float(due), error if kept else "", attempt), decode=bool,
        ), record)
        self.something_put_off.set()
        return ours

    async def sort(self, item: Item[JobRecord], category: int) -> None:
        """Pass a job on, byte for byte, to the list of its category."""
        target = self.queue.category(category)
        await self._surely(lambda: self.hands.hand_over(self._valkey, [(item, item.raw)], target))

    async def put_back(self, items: Iterable[Item[JobRecord]]) -> None:
        """Return jobs that were not run to the front of the queue.

        A server that is away is not waited for for long: we may be about to end, and then others take over.
        """
        given = list(items)
        if given:
            try:
                async with asyncio.timeout(GIVE_BACK_SECONDS):
                    await self._surely(lambda: self.hands.put_back(self._valkey, given, front=True))
            except TimeoutError:
                self.look_for_leftovers()

    async def bury(self, item: Item[JobRecord], error: str) -> None:
        """Make a dead letter of something that cannot be run at all."""
        now = self._clock.now()
        await self._surely(lambda: self.hands.bury(self._valkey, [item], error=error, now=now))

    async def _surely(
        self, ask: Callable[[], Awaitable[object]], record: JobRecord | None = None, *, when_unsure: bool = True
    ) -> bool:
        """Ask until the server answers. Every script asked here finds its item in purgatory or does nothing, so an
        answer that was lost is asked for again; then "not ours" may mean that the lost one did it.

        A ``record`` that may have a twin is not asked for again: if it is left, it is found and runs once more.
        """
        lost = False
        while True:
            try:
                return bool(await ask()) or (lost and when_unsure)
            except ReplyLost:
                lost = True
                if record is not None and not record.uid:
                    self.look_for_leftovers()
                    return when_unsure
            except Unavailable as error:
                _log.warning("the server is away, a job waits to be settled", error=str(error))
            except ErrorReply as error:
                if not _refuses_writes(error):
                    raise
                _log.warning("the server takes no writes, a job waits to be settled", error=str(error))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _persist(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except Unavailable:
                pass
            except ErrorReply as error:
                if not _refuses_writes(error):
                    raise
            await asyncio.sleep(PAUSE_SECONDS)


def _refuses_writes(error: ErrorReply) -> bool:
    """Memory or disk is full, or replicas are missing: it may pass, and nothing of the script was done."""
    text = str(error)
    return "when used memory > 'maxmemory'" in text or text.startswith(("MISCONF", "NOREPLICAS"))


def _unread(raw: bytes) -> Item[JobRecord]:
    """Something that is moved without looking into it."""
    return Item(JobRecord("", {}, 0.0), raw)


def _raw(reply: bytes | None) -> bytes | None:
    return reply
