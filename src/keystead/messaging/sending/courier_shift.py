"""A shift of a courier: take, pass the gate, ask the provider, settle; as many requests at once as allowed."""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from keystead.clock import Clock, real, real_seconds
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.jobs import BatchRun, StopReason
from keystead.messaging.sending.calls import calls
from keystead.messaging.sending.carrier import Carried, Carrier, CredentialsMissing, Health, Verdict, health_of
from keystead.messaging.sending.channel import Channel
from keystead.messaging.sending.courier_gate import Gate, Ticket
from keystead.messaging.sending.courier_given_up import settle_given_up
from keystead.messaging.sending.courier_hands import PAUSE_SECONDS, Hands
from keystead.messaging.sending.courier_settling import LAST_SECONDS, Settlement, Settling
from keystead.messaging.sending.models import Outgoing, TraceEntry
from keystead.messaging.sending.trace import trace_all
from keystead.patterns import Item, Writes
from keystead.telemetry import Durations, counts, logger
from keystead.tracing import is_listening, span

T = TypeVar("T", bound=Outgoing)

GATHER_SECONDS: Final = 0.002  # requests end one by one; a few together cost one round trip
SPARE: Final = 0.5  # so many more are held than there is room for
LOOK_SECONDS: Final = 1.0
SOON_SECONDS: Final = 0.2  # whoever stops can wait so long for a request to notice; to be woken costs more
SUSPECT_SECONDS: Final = 5.0

counts.describe("messages_carried", "messages that a provider was asked to deliver, by channel")
counts.describe("messages_lost_hold", "messages carried here that another courier had adopted, by channel")
counts.describe("messages_dropped_unsure", "messages given up because they may have been sent, by channel")

CALL_SECONDS: Final = Durations(
    "provider_call_seconds", "requests to providers, by channel and how they ended", labels=("channel", "outcome")
)

_log = logger("messaging.sending")


@dataclass(slots=True)
class Done:
    """What was done since ``started_at``."""

    started_at: float
    counts: dict[str, int]
    settled: int = 0
    failed: int = 0
    dead: int = 0
    recovered: int = 0

    def ended(self, reason: StopReason, running_seconds: float) -> BatchRun:
        return BatchRun(reason, running_seconds, self.counts, self.settled, self.failed, self.dead, self.recovered)


class Shift(Generic[T]):
    """Works with one pair of hands through one gate. ``run`` counts what was done."""

    def __init__(
        self, valkey: Valkey, clock: Clock, channel: Channel[T], carrier: Carrier[T], hands: Hands[T], gate: Gate[T], *,
        concurrent_requests: int, on_ambiguous: str, wait_seconds: float, trace_seconds: float, name: str,
        zeros: dict[str, int],
    ) -> None:
        self.hands, self.run = hands, Done(clock.now(), zeros)
        self._valkey, self._clock, self._channel, self._carrier, self._gate = valkey, clock, channel, carrier, gate
        self._most, self._on_ambiguous, self._wait_seconds = concurrent_requests, on_ambiguous, wait_seconds
        self._trace_seconds, self._name = trace_seconds, name
        self._backlog: deque[Item[T]] = deque()  # taken, and not past the gate
        self._requests: set[asyncio.Task[None]] = set()
        self._answered: set[asyncio.Task[None]] = set()  # of those, whose provider has answered
        self._stop = asyncio.Event()
        self._settling = Settling(valkey, channel, hands, gate, lambda: self._stop.is_set())
        self._suspects_at = 0.0  # when to make way for a message on its last try
        self._alone = False
        self._throttled = False  # the provider asked for a pause, so what is held has to wait for it too
        self._unknown = False  # what proves who we are could not be had

    @property
    def is_idle(self) -> bool:
        return not self._requests and not self._backlog

    # -- the loop ---------------------------------------------------------------------------------------------------

    async def work(self, stop: asyncio.Event, *, until_empty: bool = False) -> StopReason | None:
        """Work until ``stop`` (then None), or with ``until_empty`` until nothing is left or nothing may be done."""
        self._stop = stop
        reason: StopReason | None = None
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._stir_at_stop())
            while not stop.is_set() and reason is None:
                try:
                    reason = await self._step(group, until_empty)
                except (Unavailable, ErrorReply) as error:
                    _log.warning("a courier waits for its server", channel=self._channel.name, error=str(error))
                    self.hands.look_for_leftovers()
                    await asyncio.sleep(PAUSE_SECONDS)
            watch.cancel()
            self.hands.stop_waiting()
        # Every request and every wait has ended by now.
        with contextlib.suppress(Unavailable, ErrorReply, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                left = await self.hands.left_behind()
                await self.hands.put_back((*self._backlog, *left), self._gate.owned())
        self._backlog.clear()
        return reason

    async def _stir_at_stop(self) -> None:
        await self._stop.wait()
        self.hands.stir.set()

    async def _step(self, group: asyncio.TaskGroup, until_empty: bool) -> StopReason | None:
        """One round; says why there should be no other, if so."""
        free = await self._room()
        if free <= 0:
            return None
        if self._gate.wait_seconds > 0:
            if until_empty and not self._requests:
                return StopReason.BACKPRESSURE
            await self._rest(self._gate.wait_seconds)
            return None
        if until_empty and self._unknown:
            await self._rest(LOOK_SECONDS)
            return None if self._requests else StopReason.CREDENTIALS
        if self._throttled and await self._is_paused():
            if until_empty and not self._requests:
                return StopReason.BACKPRESSURE
            await self._rest(LOOK_SECONDS)
            return None
        if self._gate.is_shut:
            free = min(free, self._carrier.batch_items)
        closed = False
        if not self._backlog or (len(self._backlog) < free and not self._gate.is_shut):
            # Some more than there is room for: they are at hand when the next requests end.
            spare = 0 if self._gate.is_shut else int(self._most * self._carrier.batch_items * SPARE)
            closed = await self._take(max(1, free - len(self._backlog) + spare))
        if self._backlog:
            await self._admit(group, free)
            return None
        if not self._requests and until_empty:
            return StopReason.BACKPRESSURE if closed else StopReason.LIST_EXHAUSTED
        if until_empty or closed or self._suspects_at:
            await self._rest(LOOK_SECONDS)
        else:
            self.hands.wait(group, self._arrived)
            self.hands.is_idle = not self._requests
            await self._rest(self.hands.look_in_seconds)
            self.hands.is_idle = False
        return None

    async def _is_paused(self) -> bool:
        self._throttled = await self._channel.paused_key.at().is_raised(self._valkey)
        return self._throttled

    async def _room(self) -> int:
        """How many messages fit, once it is worth a round trip."""
        free = self._free()
        if self._alone or (self._suspects_at and self._clock_time() >= self._suspects_at and self._requests):
            await self._rest(LOOK_SECONDS)  # a message on its last try is carried with nothing beside it
            self._alone = self._alone and bool(self._requests)
            return 0
        if self._requests and free < max(1, self._most // 4):
            await asyncio.sleep(GATHER_SECONDS)
            free = self._free()
            if free <= 0:
                await self._rest(LOOK_SECONDS)
                free = self._free()
        return free * self._carrier.batch_items

    def _free(self) -> int:
        """How many more requests may be made. Results may wait to be told, but not without end."""
        asking = len(self._requests) - len(self._answered)
        return self._most - asking if len(self._answered) < 2 * self._most else 0

    async def _take(self, most: int) -> bool:
        """Take from the lanes into the backlog; says whether the channel is paused."""
        if self._suspects_at and not self._requests and not self._backlog:
            grip = await self.hands.take_suspect()
            self._alone = grip.alone
        else:
            grip = await self.hands.take(most)
        self._backlog.extend(grip.items)
        if not grip.suspects_wait:
            self._suspects_at = 0.0
        elif not self._suspects_at:
            self._suspects_at = self._clock_time() + random.uniform(0, SUSPECT_SECONDS)
        return grip.closed

    def _arrived(self, item: Item[T]) -> None:
        self._backlog.append(item)
        self.hands.stir.set()

    async def _rest(self, seconds: float) -> None:
        """Until something stirs: a request ended, something arrived, it is time to stop."""
        if self._stop.is_set():
            await asyncio.sleep(0)
            return
        self.hands.stir.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.hands.stir.wait()

    @staticmethod
    def _clock_time() -> float:
        return asyncio.get_running_loop().time()

    # -- one request ------------------------------------------------------------------------------------------------

    async def _admit(self, group: asyncio.TaskGroup, most: int) -> None:
        size = self._carrier.batch_items
        items = [self._backlog.popleft() for _ in range(min(most, len(self._backlog)))]
        try:
            await self._carrier.expect([item.value for item in items])
            admission = await self._gate.admit([items[at:at + size] for at in range(0, len(items), size)])
        except BaseException:
            self._backlog.extendleft(reversed(items))
            raise
        self._backlog.extendleft(reversed(admission.refused))
        for ticket in admission.tickets:
            task = group.create_task(self._request(ticket))
            self._requests.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        self._answered.discard(task)
        self.hands.stir.set()

    async def _request(self, ticket: Ticket[T]) -> None:
        taken_at = self._clock.now()
        if not await self._at(ticket.starts_at):
            await self._let_wait(ticket)
            return
        try:
            if ticket.is_unsure and self._on_ambiguous != "resend":
                await self._clear_up(ticket, ticket.items[0], taken_at)
            else:
                await self._carry(ticket, ticket.items, taken_at)
        except Unavailable as error:
            _log.warning("a carrier lacks what it needs", channel=self._channel.name, error=str(error))
            self._unknown = isinstance(error, CredentialsMissing)
            await asyncio.sleep(PAUSE_SECONDS)
            await self._let_wait(ticket, forget=not ticket.is_unsure)
        except Exception as error:  # no message may stop the others, whatever its carrier does
            _log.exception("a carrier failed", channel=self._channel.name, messages=len(ticket.items))
            await self._crashed(ticket, error, taken_at)

    async def _at(self, starts_at: float) -> bool:
        """Wait for the reserved start; False when it is time to stop instead."""
        wait = real_seconds(self._clock, starts_at - self._clock.now())
        if 0 < wait <= SOON_SECONDS:
            await asyncio.sleep(wait)
        elif wait > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stop.wait()
        return not self._stop.is_set()

    async def _carry(self, ticket: Ticket[T], items: Sequence[Item[T]], taken_at: float) -> None:
        asked_at = self._clock.now()
        carried = await self._carried(items)
        if len(carried) != len(items):
            raise ValueError(f"a carrier gave {len(carried)} answers for {len(items)} messages")
        counts.add("messages_carried", len(items), channel=self._channel.name)
        await self._settle(ticket, list(zip(items, carried, strict=True)), taken_at, asked_at)

    async def _carried(self, items: Sequence[Item[T]]) -> Sequence[Carried]:
        """Ask the provider, as part of the trace of the first message; in those of the others it is told, too."""
        values = [item.value for item in items]
        if not is_listening():
            return await self._carrier.carry(values)
        name, channel, traces = f"send {self._channel.name}", self._channel.name, [_trace_of(value) for value in values]
        with span(name, parent=traces[0], kind="consumer", channel=channel, uid=values[0].uid, messages=len(values)):
            carried = await self._carrier.carry(values)
        for value, trace in zip(values[1:], traces[1:], strict=True):
            if trace and trace != traces[0]:
                with span(name, parent=trace, kind="consumer", channel=channel, uid=value.uid, batched=True):
                    pass
        return carried

    async def _clear_up(self, ticket: Ticket[T], item: Item[T], taken_at: float) -> None:
        """Find out what became of a message that may have been sent."""
        asked_at = self._clock.now()
        if self._on_ambiguous == "drop":
            counts.add("messages_dropped_unsure", channel=self._channel.name)
            found: Carried | Verdict = self._carrier.drop(item.value)
        elif self._on_ambiguous == "resend":
            found = Verdict.NOT_SENT
        else:
            found = await self._carrier.verify(item.value)
        if isinstance(found, Carried):
            await self._settle(ticket, [(item, found)], taken_at, asked_at, what="found out what became of it")
        elif found is Verdict.NOT_SENT:
            await self._carry(ticket, [item], taken_at)
        else:
            later = Writes(self._valkey.layout)
            self._channel.retry_later(later, item.value, self._clock.now() + self._wait_seconds)
            await self._settling.surely(lambda: self.hands.worker.settle(self._valkey, item, later))
            self.hands.let_go([item])
            await self._not_asked(ticket)

    async def _crashed(self, ticket: Ticket[T], error: Exception, taken_at: float) -> None:
        """One by one, so that the message that is at fault shows; it is tried three times."""
        if len(ticket.items) == 1:
            item, said = ticket.items[0], f"{type(error).__name__}: {error}"[:1000]
            now = self._clock.now()
            failed = await self._settling.surely(
                lambda: self.hands.mourner.fail(self._valkey, item, error=said, now=now)
            )
            self.hands.let_go([item])
            if failed is not None and failed.dead:
                with contextlib.suppress(Unavailable):  # then whoever adopts next does it
                    await settle_given_up(self._valkey, self._clock, self._channel, self._carrier,
                                          trace_seconds=self._trace_seconds)
            self.run.failed += 1
            return
        for item in ticket.items:
            alone = Ticket([item], ticket.permit, ticket.starts_at, True)
            try:
                await self._clear_up(alone, item, taken_at)
            except Unavailable:
                await self._let_wait(alone, forget=False)
            except Exception as again:  # as above
                await self._crashed(alone, again, taken_at)

    # -- settling ---------------------------------------------------------------------------------------------------

    async def _settle(
        self, ticket: Ticket[T], carried: Sequence[tuple[Item[T], Carried]], taken_at: float, asked_at: float,
        what: str = "asked the provider",
    ) -> None:
        """Each message leaves our hands together with all that follows from it, or (adopted by another) not at all."""
        task = asyncio.current_task()
        if task in self._requests:
            self._answered.add(task)
            self.hands.stir.set()
        now = self._clock.now()
        health = health_of([result for _, result in carried])
        seconds = real_seconds(self._clock, now - asked_at)
        calls.note(self._channel.name, real(self._clock).now(), seconds, [result for _, result in carried], health)
        if health is not Health.NOT_CALLED:
            CALL_SECONDS.observe(seconds, self._channel.name, health.name.lower())
        for item, result in carried:
            self._channel.intent(item.value.uid).delete(result.writes)
            facts = {"ms": round(seconds * 1000), "health": result.health.name.lower(), **result.facts}
            if ticket.is_unsure:  # one who died asked too, and left nothing else to tell of it
                facts["maybe_sent_before"] = 1
            trace_all(result.writes, item.value.uid, (
                TraceEntry("taken up", taken_at, {"courier": self._name}), TraceEntry(what, now, facts),
            ), kept_seconds=self._trace_seconds)

        self._throttled = self._throttled or health is Health.THROTTLED
        settlement = Settlement(ticket, carried, health)
        await self._settling.tell(settlement)
        self.hands.let_go([item for item, _ in carried])
        for (_, result), is_ours in zip(carried, settlement.ours, strict=False):
            if is_ours:
                self._count(result)
            else:
                counts.add("messages_lost_hold", channel=self._channel.name)

    def _count(self, result: Carried) -> None:
        self.run.settled += 1
        for name, amount in result.counts.items():
            self.run.counts[name] = self.run.counts.get(name, 0) + amount

    async def _let_wait(self, ticket: Ticket[T], *, forget: bool = True) -> None:
        """Back into the backlog, not asked for."""
        if forget:
            with contextlib.suppress(Unavailable, ErrorReply):  # they stay known as ours
                await self._gate.forget([item.value.uid for item in ticket.items])
        await self._not_asked(ticket)
        self._backlog.extendleft(reversed(ticket.items))

    async def _not_asked(self, ticket: Ticket[T]) -> None:
        if ticket.permit.is_probe:
            with contextlib.suppress(Unavailable, ErrorReply):  # then the next may try when this one's time is over
                async with self._valkey.pipeline(transaction=False) as pipeline:
                    self._gate.give_back(pipeline, ticket)
                    await pipeline.execute()


def _trace_of(message: Outgoing) -> str:
    return getattr(message, "trace", "") or ""
