"""The courier: carries the messages of one channel to its provider, many at a time, and loses none by dying."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from keystead.clock import Clock, real_seconds
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.ids import new_uid
from keystead.jobs import BatchRun, StopReason, graceful_sleep
from keystead.jobs.batch_job_run import RunRecord
from keystead.keys import RecordKey
from keystead.messaging.sending.carrier import Carrier
from keystead.messaging.sending.channel import Channel
from keystead.messaging.sending.courier_gate import Gate
from keystead.messaging.sending.courier_given_up import settle_given_up
from keystead.messaging.sending.courier_hands import Hands
from keystead.messaging.sending.courier_pace import Pace
from keystead.messaging.sending.courier_shift import Done, Shift
from keystead.messaging.sending.models import Lane, Outgoing
from keystead.patterns import LockHeld
from keystead.telemetry import logger

T = TypeVar("T", bound=Outgoing)

BUDGET_SECONDS: Final = 50.0
UPKEEP_SECONDS: Final = 1.0
ADOPT_SECONDS: Final = 10.0
RECORD_SECONDS: Final = 15.0
SOON_SECONDS: Final = 0.01  # more is due already
MOST_MOVES: Final = 200  # of a hundred in each lane, before a single run begins

_log = logger("messaging.sending")


@dataclass(frozen=True, slots=True)
class CourierSettings:
    """``concurrent_requests`` to the provider at once in this courier; ``rate_per_second`` messages over all processes,
    0 for any number. ``on_ambiguous``: verify, resend or drop. ``wait_seconds``: when a carrier that cannot say yet
    what became of a message is asked again."""

    concurrent_requests: int = 10
    rate_per_second: float = 0.0
    on_ambiguous: str = "verify"
    wait_seconds: float = 60.0
    trace_seconds: float = 172_800.0


class Courier(Generic[T]):
    """Carries messages, weighted by lane. Any number may work at once, in any number of processes.

    Before the provider is asked an intent is written; in the step that settles a message it is removed. Whoever finds
    the intent of another courier knows that the message may have been sent, and does what ``on_ambiguous`` says.
    """

    def __init__(
        self, valkey: Valkey, clock: Clock, channel: Channel[T], carrier: Carrier[T], *, runs: RecordKey[Any],
        settings: CourierSettings | None = None, stopping: Callable[[], bool] = lambda: False, hostname: str = "",
    ) -> None:
        """``stopping`` ends a single run early. ``hostname`` is the place that its lock is held by."""
        self._valkey, self._clock, self._channel, self._carrier = valkey, clock, channel, carrier
        self._settings = settings or CourierSettings()
        self._record, self._stopping = RunRecord(runs), stopping
        self._hostname = hostname or f"jobs-{socket.gethostname()}"

    def _shift(self, name: str, hands_name: str) -> Shift[T]:
        pace = Pace(self._channel.rate_key.at(), self._settings.rate_per_second)
        hands = Hands(self._valkey, self._clock, self._channel, hands_name)
        gate = Gate(self._valkey, self._clock, self._channel, name, pace)
        return Shift(self._valkey, self._clock, self._channel, self._carrier, hands, gate,
                     concurrent_requests=self._settings.concurrent_requests,
                     on_ambiguous=self._settings.on_ambiguous, wait_seconds=self._settings.wait_seconds,
                     trace_seconds=self._settings.trace_seconds, name=name, zeros=self._record.zeros())

    # -- continuous -------------------------------------------------------------------------------------------------

    async def work(self, stop: asyncio.Event) -> None:
        """Carry until ``stop`` is set; woken by what arrives. Then requests under way end, and the rest is put back.

        A server that is away is waited for. Messages of couriers that died are adopted; messages whose retry is due
        return to their lanes.
        """
        name = new_uid("courier")
        shift = self._shift(name, name)
        async with shift.hands.worker.alive(self._valkey), asyncio.TaskGroup() as group:
            group.create_task(self._keep_up(shift, stop))
            group.create_task(self._keep_record(shift, stop))
            await shift.work(stop)
            await self._note(shift, StopReason.SIGNAL)

    async def _keep_up(self, shift: Shift[T], stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        adopt_at = loop.time()
        while not stop.is_set():
            pause = UPKEEP_SECONDS
            try:
                if loop.time() >= adopt_at:
                    await self._adopt()
                    adopt_at = loop.time() + ADOPT_SECONDS
                pause = await self._move_due()
            except (Unavailable, ErrorReply) as error:
                _log.warning("a courier cannot look after its lanes", channel=self._channel.name, error=str(error))
            await _until(stop, pause)

    async def _adopt(self) -> None:
        adopted = await self._channel.work.adopt(
            self._valkey, now=self._clock.now(), given_up=self._channel.given_up
        )
        await settle_given_up(self._valkey, self._clock, self._channel, self._carrier,
                              trace_seconds=self._settings.trace_seconds)
        if adopted.items or adopted.dead:
            _log.warning("messages of dead couriers were adopted", channel=self._channel.name, items=adopted.items,
                         dead=adopted.dead)

    async def _move_due(self) -> float:
        """Return what is due to its lane; says how long to wait until it is worth looking again."""
        now = self._clock.now()
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [(lane, self._channel.next_due(pipeline, lane)) for lane in Lane]
            await pipeline.execute()
        times = {lane: at for lane, each in asked if (at := await each) is not None}
        due = [lane for lane, at in times.items() if at <= now]
        if due:
            await asyncio.gather(*(self._channel.move_due(self._valkey, lane, now=now) for lane in due))
            return SOON_SECONDS
        return min([UPKEEP_SECONDS, *(real_seconds(self._clock, at - now) for at in times.values())])

    async def _keep_record(self, shift: Shift[T], stop: asyncio.Event) -> None:
        """Write down what was done, when nothing waits any more, but not too often."""
        while not stop.is_set():
            await _until(stop, RECORD_SECONDS)
            if shift.is_idle and not stop.is_set():
                await self._note(shift, StopReason.LIST_EXHAUSTED)

    async def _note(self, shift: Shift[T], reason: StopReason) -> None:
        if not shift.run.settled and not shift.run.failed:
            return
        run, shift.run = shift.run, Done(self._clock.now(), self._record.zeros())
        with contextlib.suppress(Unavailable, ErrorReply):
            await self._record.begun(self._valkey, run.started_at)
            await self._ended(run, reason)

    # -- one run ----------------------------------------------------------------------------------------------------

    async def run(self) -> BatchRun | None:
        """A single run under the documented lock, for at most 50 s; None while another run holds the lock."""
        holding = self._channel.lock.at().hold(
            self._valkey, self._clock, hostname=self._hostname, stopping=self._stopping
        )
        async with contextlib.AsyncExitStack() as held:
            try:
                await held.enter_async_context(holding)
            except LockHeld:
                return None
            return await self._run()

    async def _run(self) -> BatchRun:
        shift = self._shift(new_uid("courier"), "")
        shift.run = Done(self._clock.now(), self._record.zeros())
        await self._record.begun(self._valkey, shift.run.started_at)
        found = await shift.hands.mourner.recover(self._valkey, now=self._clock.now())
        shift.run.recovered, shift.run.dead = found.items, found.dead
        await self._adopt()
        for _ in range(MOST_MOVES):
            if await self._move_due() > SOON_SECONDS:
                break
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(stop, shift.run.started_at + BUDGET_SECONDS))
            reason = await shift.work(stop, until_empty=True)
            watch.cancel()
        stopped = StopReason.SIGNAL if self._stopping() else StopReason.TIME_EXHAUSTED
        return await self._ended(shift.run, reason or stopped)

    async def _watch(self, stop: asyncio.Event, ends_at: float) -> None:
        await graceful_sleep(ends_at - self._clock.now(), stopping=self._stopping, clock=self._clock)
        stop.set()

    async def _ended(self, run: Done, reason: StopReason) -> BatchRun:
        finished_at = self._clock.now()
        ended = run.ended(reason, finished_at - run.started_at)
        await self._record.ended(self._valkey, ended, finished_at)
        return ended


async def _until(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
