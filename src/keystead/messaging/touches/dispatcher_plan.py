"""What becomes of each touch of a batch, decided before anything is written.

A touch is stale, improper, unreachable or reachable. What is wrong with one says nothing of the others.
"""

import asyncio
import copy
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid, Refused
from keystead.ids import UserSub, new_uid
from keystead.jobs import ROOMS_QUEUE, JobRef
from keystead.members import Contacts
from keystead.messaging.sending import trace
from keystead.messaging.touches.callbacks import call_back
from keystead.messaging.touches.dispatcher_guards import SAME, Guards
from keystead.messaging.touches.dispatcher_states import States
from keystead.messaging.touches.keys import BY_USER, TO_LOG
from keystead.messaging.touches.messages import Rendered, rendered
from keystead.messaging.touches.models import DebugFields, StateFields, Touch, entry_of
from keystead.messaging.touches.outlets import Outlets, Prepared
from keystead.messaging.touches.pending import open_pending
from keystead.messaging.touches.points import TouchPoint, TouchPoints
from keystead.messaging.touches.selection import RESET, select
from keystead.messaging.touches.stats import DROPS, SENDS
from keystead.patterns import Writes
from keystead.settings import MessagingSettings
from keystead.store import Database
from keystead.tracing import span

STALE_SECONDS: Final = 8 * 3600
BREATH_TOUCHES: Final = 20  # planned in one go; each takes a good part of a millisecond
GIVEN_UP: Final = "given up; its dead letter says why"


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a touch: what is counted, and everything that is written when it leaves the queue."""

    touch: Touch
    outcome: str
    writes: Writes


@dataclass(slots=True)
class _Batch:
    """What is known of a batch, read in bulk."""

    now: float
    points: Mapping[str, TouchPoint]
    addresses: dict[tuple[str, str], list[str]]
    states: States
    guards: Guards


class Planner:
    """Plans batches of touches."""

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, points: TouchPoints, contacts: Contacts,
        outlets: Outlets, settings: MessagingSettings, *, rng: random.Random | None = None,
    ) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._points, self._contacts, self._outlets, self._settings = points, contacts, outlets, settings
        self._rng = rng or random.Random()

    def on(self, lane: Valkey) -> "Planner":
        """The same for the touches of a lane."""
        planner = copy.copy(self)
        planner._valkey = lane
        return planner

    async def plan(self, touches: Sequence[Touch]) -> list[Plan]:
        """Decide about each of them. ``Unavailable`` if what must be asked is away: nothing was decided then."""
        now = self._clock.now()
        fresh = [touch for touch in touches if now - touch.queued_at <= STALE_SECONDS]
        batch = await self._read(fresh, now)
        plans: list[Plan] = []
        for first in range(0, len(touches), BREATH_TOUCHES):
            plans += [self._planned(touch, batch) for touch in touches[first:first + BREATH_TOUCHES]]
            await asyncio.sleep(0)  # couriers in this process have requests under way
        return plans

    def given_up(self, touch: Touch) -> Plan:
        """What follows from a touch that nobody will plan any more: it ends as one that could not be made."""
        plan = _Writing(self._valkey, touch, self._clock.now(), self._settings.trace_seconds)
        return plan.ended("improper", touch.kind, "send_event_improper", why=GIVEN_UP)

    # -- facts ------------------------------------------------------------------------------------------------------

    async def _read(self, touches: Sequence[Touch], now: float) -> _Batch:
        points = await self._points.named({touch.touch_point_event_slug for touch in touches})
        known = [touch for touch in touches if touch.touch_point_event_slug in points]
        addresses: dict[tuple[str, str], list[str]] = {}
        for channel, outlet in self._outlets.items():
            subs = _people(touch for touch in known if touch.channel == channel)
            for sub, found in (await outlet.addresses(subs)).items() if subs else ():
                addresses[channel, sub] = found
        reachable = [touch for touch in known if addresses.get((touch.channel, touch.user_sub))]
        people = await self._contacts.described(_people(reachable)) if reachable else {}
        guards = Guards(self._settings, now, people)
        await guards.read(self._valkey, reachable)
        states = States(self._database)
        await states.read((touch, points[touch.touch_point_event_slug]) for touch in reachable)
        return _Batch(now, points, addresses, states, guards)

    # -- one touch --------------------------------------------------------------------------------------------------

    def _planned(self, touch: Touch, batch: _Batch) -> Plan:
        with span("touch", parent=touch.trace, kind="consumer", uid=touch.uid, channel=touch.channel,
                  event=touch.touch_point_event_slug) as here:
            plan = self._decided(touch, batch)
            here.set(outcome=plan.outcome)
            return plan

    def _decided(self, touch: Touch, batch: _Batch) -> Plan:
        plan = _Writing(self._valkey, touch, batch.now, self._settings.trace_seconds)
        if batch.now - touch.queued_at > STALE_SECONDS:
            return plan.ended("stale", None, "send_stale")
        try:
            point = _checked(touch, batch.points)
            addresses = batch.addresses.get((touch.channel, touch.user_sub))
            if not addresses:
                return plan.ended("unreachable", touch.kind, "send_unreachable")
            if refusal := batch.guards.refusal(touch):
                return plan.dropped(refusal)
            chosen = select(
                point.selection_strategy, point.messages.of(touch.channel), batch.states.of(touch, point), self._rng,
                reset=bool(touch.event_parameters.get(RESET)),
            )
            if chosen is None:
                raise Invalid(f"the touch point has no message for {touch.channel}")
            words = rendered(chosen.message, touch.event_parameters)
            if batch.guards.repeats(touch, words.digest):
                return plan.dropped(SAME)
            messages = plan.messages(point, words, addresses)
            for message in messages:
                self._outlets[touch.channel].queue(plan.writes, message)
        except Refused as refused:
            plan.forget()
            return plan.ended("improper", touch.kind, "send_event_improper", why=str(refused)[:300])
        state = batch.states.advance(touch, point, chosen.state, batch.now)
        batch.guards.note(plan.writes, touch, words.digest)
        return plan.reached(messages, words, state)


class _Writing:
    """Gathers what is written for one touch."""

    def __init__(self, valkey: Valkey, touch: Touch, now: float, trace_seconds: float) -> None:
        self.writes = Writes(valkey.layout)
        self._touch, self._now, self._trace_seconds = touch, now, trace_seconds
        self._attempt = new_uid("utbl")

    def forget(self) -> None:
        """Write nothing of what was gathered: one of the messages could not be queued."""
        self.writes = Writes(self.writes.layout)

    def ended(self, outcome: str, breakdown: str | None, event: str, **facts: str) -> Plan:
        """The touch ends here, and its failure callback runs."""
        self._counted(outcome, breakdown)
        self._logged(event, facts)
        BY_USER.at(self._touch.user_sub).remove(self.writes, self._touch.uid)
        called = call_back(self.writes, self._touch.uid, self._touch.failure_callback, self._now)
        self._traced(outcome, **{"callback": called, **facts})
        return Plan(self._touch, outcome, self.writes)

    def dropped(self, why: str) -> Plan:
        """The person is spared this touch: to whoever sent it, they could not be reached."""
        DROPS.tally().incr(why, self._touch.kind, at=self._touch.queued_at).store(self.writes)
        return self.ended("unreachable", self._touch.kind, "send_unreachable", reason=why)

    def messages(self, point: TouchPoint, words: Rendered, addresses: list[str]) -> list[Prepared]:
        """One message for each address."""
        touch, prefix = self._touch, {"sms": "sms", "push": "pma", "email": "em"}[self._touch.channel]
        told = {"attempt_uid": self._attempt, "touch_uid": touch.uid, "user_sub": touch.user_sub}
        failure = JobRef(f"touch.{touch.channel}_failure_handler", told, ROOMS_QUEUE)
        success = JobRef(f"touch.{touch.channel}_success_handler", {**told, "touch_point_uid": point.uid}, ROOMS_QUEUE)
        return [Prepared(new_uid(prefix), address, words.shown, success, failure, touch.user_sub, touch.lane, self._now)
                for address in addresses]

    def reached(self, messages: list[Prepared], words: Rendered, state: StateFields | None) -> Plan:
        """The messages leave for their channel; the touch waits for news of them."""
        touch, uids = self._touch, [message.uid for message in messages]
        self._counted("reachable", f"{touch.kind}:{len(messages)}")
        self._logged("send_reachable", {
            "message": {"uid": words.uid, **words.shown}, "destinations": [message.address for message in messages],
        })
        if state is not None:
            TO_LOG.queue.push_right(self.writes, entry_of(state))
        waits = open_pending(self.writes, touch, uids, self._now)
        on_its_way = BY_USER.at(touch.user_sub)
        on_its_way.add(self.writes, *uids)
        if not waits:  # nobody will hear when the last of them ends
            on_its_way.remove(self.writes, touch.uid)
        self._traced("reachable", message=words.uid, destinations=len(uids), waits=int(waits), messages=",".join(uids))
        return Plan(touch, "reachable", self.writes)

    def _counted(self, outcome: str, breakdown: str | None) -> None:
        at = self._touch.queued_at
        SENDS.tally().incr("attempted", self._touch.kind, at=at).incr(outcome, breakdown, at=at).store(self.writes)

    def _logged(self, kind: str, facts: Mapping[str, Any]) -> None:
        touch, now = self._touch, self._now
        attempt = {
            "type": "send_attempt", "queued_at": touch.queued_at, "channel": touch.channel,
            "event": touch.touch_point_event_slug, "event_parameters": touch.event_parameters,
        }
        follows = {"type": kind, "parent": self._attempt, **facts}
        TO_LOG.queue.push_right(
            self.writes,
            entry_of(DebugFields(self._attempt, touch.uid, touch.user_sub, attempt, now)),
            entry_of(DebugFields(new_uid("utbl"), touch.uid, touch.user_sub, follows, now)),
        )

    def _traced(self, what: str, **facts: str | int) -> None:
        trace(self.writes, self._touch.uid, what, self._now, kept_seconds=self._trace_seconds, **facts)


def _checked(touch: Touch, points: Mapping[str, TouchPoint]) -> TouchPoint:
    """The point of a touch that can be sent; ``Refused`` says why it is improper."""
    point = points.get(touch.touch_point_event_slug)
    if point is None:
        raise Invalid("there is no such touch point")
    if not point.messages.of(touch.channel):
        raise Invalid(f"the touch point has no message for {touch.channel}")
    point.rules.check(touch.event_parameters)
    return point


def _people(touches: Iterable[Touch]) -> list[UserSub]:
    return [UserSub(sub) for sub in dict.fromkeys(touch.user_sub for touch in touches)]
