"""The gate before a provider: intents are written, starts reserved and the breaker asked, all in one round trip."""

import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from keystead.clock import Clock, real
from keystead.engine import Pipeline, Valkey
from keystead.ids import new_uid
from keystead.keys import Executor
from keystead.messaging.sending.carrier import Health
from keystead.messaging.sending.channel import DAY_SECONDS, Channel
from keystead.messaging.sending.courier_pace import Pace
from keystead.messaging.sending.models import Outgoing
from keystead.patterns import BreakerState, Item, Permit
from keystead.telemetry import counts

T = TypeVar("T", bound=Outgoing)

MOST_NOTED: Final = 20

counts.describe("messages_unsure", "messages that may have been sent when their courier died, by channel")


@dataclass(slots=True)
class Ticket(Generic[T]):
    """One request that may be made. ``is_unsure``: an earlier courier may have made it."""

    items: list[Item[T]]
    permit: Permit
    starts_at: float
    is_unsure: bool = False


@dataclass(slots=True)
class Admission(Generic[T]):
    """What may be asked now, and what has to wait."""

    tickets: list[Ticket[T]] = field(default_factory=list)
    refused: list[Item[T]] = field(default_factory=list)


class Gate(Generic[T]):
    """Lets requests through, or not. While it is shut one request at a time finds out whether it may open."""

    def __init__(self, valkey: Valkey, clock: Clock, channel: Channel[T], name: str, pace: Pace) -> None:
        self._valkey, self._clock, self._channel, self._name, self._pace = valkey, clock, channel, name, pace
        self._breaker = channel.breaker.at()
        self._real = real(clock)  # a provider outside is well or ill in real time, however fast ours runs
        self._opens_at = 0.0
        self.is_shut = False
        self._own: set[str] = set()  # messages whose intent we may have written, and whose provider we did not ask

    @property
    def wait_seconds(self) -> float:
        """How long to wait before anything is worth asking."""
        return max(0.0, self._opens_at - time.monotonic()) if self.is_shut else 0.0

    async def admit(self, batches: Sequence[list[Item[T]]]) -> Admission[T]:
        """Ask for these requests. Whatever is refused, or lost on the way, may be asked for again."""
        now = self._clock.now()
        items = [item for batch in batches for item in batch]
        uids = {item.value.uid for item in items}
        known, self._own = self._own, self._own | uids
        async with self._valkey.pipeline(transaction=False) as pipeline:
            before = [self._write_intent(pipeline, item.value) for item in items]
            starts = self._pace.reserve(pipeline, len(items), now=now) if self._pace.is_limited else None
            asked = self._breaker.ask(pipeline, now=self._real.now())
            await pipeline.execute()
        permit = await asked
        unsure = {item.value.uid for item, intent in zip(items, before, strict=True)
                  if self._is_of_another(await intent, item.value.uid in known)}
        if not permit.allowed:
            self._shut(permit.retry_after_seconds)
            await self.forget([item.value.uid for item in items if item.value.uid not in unsure])
            return Admission(refused=items)
        if permit.is_probe:
            self._shut(self._channel.breaker.probe_seconds)
            kept, spare = batches[:1], [item for batch in batches[1:] for item in batch]
            await self.forget([item.value.uid for item in spare if item.value.uid not in unsure])
        else:
            self.is_shut = False
            kept, spare = batches, []
        tickets = self._tickets(kept, permit, now if starts is None else await starts, unsure)
        self._own -= {item.value.uid for ticket in tickets for item in ticket.items}
        return Admission(tickets, spare)

    def _tickets(
        self, batches: Sequence[list[Item[T]]], permit: Permit, starts_at: float, unsure: set[str]
    ) -> list[Ticket[T]]:
        tickets: list[Ticket[T]] = []
        for batch in batches:
            sure = [item for item in batch if item.value.uid not in unsure]
            if sure:
                tickets.append(Ticket(sure, permit, starts_at))
            tickets += (Ticket([item], permit, starts_at, True) for item in batch if item.value.uid in unsure)
            starts_at += self._pace.gap_seconds * len(batch)
        if unsure:
            counts.add("messages_unsure", len(unsure), channel=self._channel.name)
        # A call is noted under the uid of its permit, so each has its own.
        for ticket in tickets[1:]:
            ticket.permit = replace(permit, uid=new_uid("call"))
        return tickets

    async def forget(self, uids: Sequence[str]) -> None:
        """Remove intents of messages whose provider was not asked. If that fails they stay known as ours."""
        if not uids:
            return
        self._own.update(uids)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for uid in uids:
                self._channel.intent(uid).delete(pipeline)
            await pipeline.execute()
        self._own.difference_update(uids)

    def owned(self) -> list[str]:
        """Messages whose intent may be ours though nothing was asked."""
        return list(self._own)

    def note(
        self, pipeline: Pipeline, ended: Sequence[tuple[Ticket[T], Health]]
    ) -> list[Awaitable[BreakerState]]:
        """Note how requests went, among what settles their messages; what it gives is for ``noted``."""
        now, fine, noted = self._real.now(), [], []
        for ticket, health in ended:
            if health is Health.NOT_CALLED:
                self.give_back(pipeline, ticket)
            elif health is Health.FINE and not ticket.permit.is_probe:
                fine.append(ticket.permit)
            elif health is not Health.THROTTLED or ticket.permit.is_probe:
                well = health is not Health.FAILED
                noted.append(self._breaker.record(pipeline, ticket.permit, went_well=well, now=now))
        if fine:
            # More than the breaker judges by would only push one another out.
            others = fine[1:MOST_NOTED]
            noted.append(self._breaker.record(pipeline, fine[0], went_well=True, now=now, also=others))
        return noted

    def give_back(self, on: Executor, ticket: Ticket[T]) -> None:
        """Nobody was asked after all, so that this ticket found nothing out: another may, at once."""
        if ticket.permit.is_probe:
            self._channel.breaker.probe.at().delete(on)
            self._opens_at = 0.0

    def noted(self, state: BreakerState) -> None:
        """The breaker's answer to ``note``."""
        if state is BreakerState.OPEN:
            self._shut(self._channel.breaker.rest_seconds)
        elif state is BreakerState.CLOSED:
            self.is_shut = False

    def _shut(self, seconds: float) -> None:
        self.is_shut = True
        self._opens_at = time.monotonic() + seconds

    def _write_intent(self, pipeline: Pipeline, value: T) -> Awaitable[str | None]:
        name = self._channel.intent(value.uid).name(pipeline.layout)
        return pipeline.run(
            ("SET", name, f"{value.retry} {self._name}", "NX", "GET", "PX", DAY_SECONDS * 1000), _text
        )

    def _is_of_another(self, intent: str | None, may_be_ours: bool) -> bool:
        return intent is not None and not (may_be_ours and intent.endswith(f" {self._name}"))


def _text(reply: bytes | None) -> str | None:
    return None if reply is None else reply.decode(errors="replace")
