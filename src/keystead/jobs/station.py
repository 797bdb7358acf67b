"""One queue of one worker: taking jobs into its purgatory, and settling what became of them."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.errors import ReplyLost, Unavailable
from keystead.jobs.callbacks import callback_record
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobOptions, JobRecord, JobRef
from keystead.jobs.records import changed, new_uid
from keystead.keys import ListRef, Undecodable
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec, Item, TakenItems
from keystead.telemetry import counts, logger

SETTLE = Script("keystead.jobs", "scripts/settle.lua")
RETRY = Script("keystead.jobs", "scripts/retry.lua")

WAIT_SECONDS = 1.0  # below the time that the sign of life sent along counts
PAUSE_SECONDS = 0.5
LATE_SECONDS = 2.0  # by then the server has noticed that a connection is gone, and delivers nothing more over it
MOST_ACKNOWLEDGED = 500
NO_OPTIONS = JobOptions()

counts.describe("jobs_lost_leases", "jobs that ended here after another worker had taken them over")

_log = logger("jobs")
_letters = DeadLetterCodec()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended: ``status`` is succeeded, failed or cancelled; a failed one has an ``error``."""

    status: str
    error: str = ""
    result: str = ""
    attempts: int = 1
    follow: JobRef | None = None


class Station:
    """Takes, waits and settles. ``start`` of the worker runs what was taken, ``held`` says what runs."""

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
        self.something_put_off = asyncio.Event()

    # -- taking -----------------------------------------------------------------------------------------------------

    async def take(self, most: int) -> TakenItems[JobRecord]:
        """Up to ``most`` of the oldest jobs. Raises ``Unavailable`` while the server is away."""
        if self._look_at and self._look_at[0] <= time.monotonic():
            found = await self._left_behind(most)
            if found.items:
                return found
        try:
            return await self.hands.take_from(
                self._valkey, self._lists, self.queue.paused, most, now=self._clock.now(), leftovers_first=False
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
            item: Item[JobRecord] = Item(JobRecord("", {}, 0.0), raw)
            await self.bury(item, f"does not decode: {error.reason}")
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
        purgatory = self.hands.purgatory.name(self._valkey.layout)
        try:
            # In one write: the sign of life is on the server before a job can arrive.
            async with self._valkey.pipeline(transaction=False) as pipeline:
                self.hands.beat(pipeline)
                moved = pipeline.run(("BLMOVE", name, purgatory, "LEFT", "RIGHT", WAIT_SECONDS), _raw)
                await pipeline.execute()
            raw = await moved
            item = await self._opened(raw) if raw is not None else None
            if item is not None and not arrived(item):
                await self.put_back([item])
        except Unavailable:
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
        self._finished.append(item)
        self._something_finished.set()
        self._all_acknowledged.clear()

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
            # Repeating is harmless for records that cannot have a twin. Others are left: they run once more.
            self._finishing = [item for item in self._finishing if item.value.uid]
            raise
        if done.lost:
            counts.add("jobs_lost_leases", len(done.lost))

    async def forget(self, item: Item[JobRecord]) -> bool:
        """Acknowledge a job before it runs; says false when it was no longer ours."""
        return await self._surely(lambda: self.hands.finish(self._valkey, [item]))

    async def settle(self, item: Item[JobRecord], ending: Ending) -> bool:
        """End a job and do all that follows from it, in one step; says false when it was no longer ours."""
        record, queue, now = item.value, self.queue, self._clock.now()
        options, uid = record.options or NO_OPTIONS, record.uid or "-"
        letter = b""
        if ending.status == "failed":
            letter = _letters.encode(DeadLetter(item.raw, ending.error, now, ending.attempts))
        follow = b""
        if ending.follow is not None:
            outcome = {"uid": record.uid, "name": record.name, "status": ending.status, "attempts": ending.attempts,
                       "error": ending.error, "result": ending.result}
            follow = msgspec.json.encode(callback_record(ending.follow, outcome, queued_at=now, uid=new_uid()))
        state = {"status": ending.status, "finished_at": repr(now), "attempts": str(ending.attempts),
                 "error": ending.error, "result": ending.result, "worker": self.hands.name}
        arguments = (
            item.raw, uid, ending.status, letter, follow, round(options.keep_seconds * 1000),
            msgspec.json.encode(state), int(bool(options.batch)), int(bool(options.unique)),
        )
        keys = (
            self.hands.purgatory, self.hands.poison, queue.work.queue, queue.work.dead, queue.waiting, queue.job(uid),
            queue.dependents(uid), queue.batch(options.batch or "-"), queue.unique(options.unique or "-"),
        )
        ours = await self._surely(lambda: SETTLE(self._valkey, keys=keys, args=arguments, decode=bool))
        if not ours:
            counts.add("jobs_lost_leases")
        return ours

    async def put_off(self, item: Item[JobRecord], due: float, error: str = "", *, slot: float = 0.0) -> bool:
        """Let a job run later: after a failed try, whose ``error`` is counted, or at a reserved start."""
        record, queue = item.value, self.queue
        uid, attempt = record.uid or new_uid(), record.attempt + bool(error)
        raw = changed(item.raw, uid=uid, attempt=attempt, slot=slot)
        kept = record.options is not None and record.options.keep_seconds > 0
        ours = await self._surely(lambda: RETRY(
            self._valkey, keys=(self.hands.purgatory, self.hands.poison, queue.delayed, queue.job(uid)),
            args=(item.raw, raw, float(due), error if kept else "", attempt), decode=bool,
        ))
        self.something_put_off.set()
        return ours

    async def sort(self, item: Item[JobRecord], category: int) -> None:
        """Pass a job on, byte for byte, to the list of its category."""
        target = self.queue.category(category)
        await self._surely(lambda: self.hands.hand_over(self._valkey, [(item, item.raw)], target))

    async def put_back(self, items: Iterable[Item[JobRecord]]) -> None:
        """Return jobs that were not run to the front of the queue."""
        given = list(items)
        if given:
            await self._surely(lambda: self.hands.put_back(self._valkey, given, front=True))

    async def bury(self, item: Item[JobRecord], error: str) -> None:
        """Make a dead letter of something that cannot be run at all."""
        now = self._clock.now()
        await self._surely(lambda: self.hands.bury(self._valkey, [item], error=error, now=now))

    async def _surely(self, ask: Callable[[], Awaitable[object]]) -> bool:
        """Ask until the server answers. Every script asked here finds its item in purgatory or does nothing, so an
        answer that was lost is asked for again; then "not ours" may mean that the lost one did it."""
        lost = False
        while True:
            try:
                return bool(await ask()) or lost
            except ReplyLost:
                lost = True
            except Unavailable as error:
                _log.warning("the server is away, a job waits to be settled", error=str(error))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _persist(self, ask: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(PAUSE_SECONDS)


def _raw(reply: bytes | None) -> bytes | None:
    return reply
