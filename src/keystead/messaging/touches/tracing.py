"""The whole life of one touch, or of one channel message: steps, where it is now, jobs, rows and counts."""

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.jobs import ROOMS_QUEUE, job_list
from keystead.messaging.sending import traced
from keystead.messaging.touches.keys import PENDING, REMAINING, TO_LOG, TO_SEND
from keystead.messaging.touches.models import LogEntry
from keystead.messaging.touches.outlets import Outlets
from keystead.messaging.touches.places import Place, find, whereabouts
from keystead.messaging.touches.tables import DEBUG_LOG, USER_TOUCHES
from keystead.store import Database

# What each step of a touch is counted as.
_COUNTED: Final = {
    "queued": ("touch_send.queued",),
    **{outcome: ("touch_send.attempted", f"touch_send.{outcome}")
       for outcome in ("stale", "improper", "unreachable", "reachable")},
}


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that is known. ``about``: uid of the touch or message; ``source``: step, now, job, row or count."""

    at: float | None
    about: str
    source: str
    what: str
    facts: dict[str, Any] = field(default_factory=dict)


class Tracer:
    """Gathers what is known. Reads whole queues, so it is for people and not for every request."""

    def __init__(self, valkey: Valkey, database: Database, outlets: Outlets) -> None:
        self._valkey, self._database, self._outlets = valkey, database, outlets

    async def trace(self, uid: str) -> list[TraceEvent]:
        """Everything about a touch and its messages, or about one message; oldest first, what is true now last."""
        try:
            events = await self._steps(uid)
        except DeclarationError:  # nothing can be called so
            return []
        messages = [one for event in events for one in str(event.facts.get("messages", "")).split(",") if one]
        for message in dict.fromkeys(messages):
            events += await self._steps(message)
        events += await self._rows(uid)
        events += await self._jobs({uid, *messages})
        events.sort(key=lambda event: event.at or 0.0)
        found = await self._now(uid)
        for message in dict.fromkeys(messages):
            found += await self._now(message)
        return events + found

    async def _steps(self, uid: str) -> list[TraceEvent]:
        events = []
        for step in [step for lane in self._valkey.lanes for step in await traced(lane, uid)]:
            events.append(TraceEvent(step.at, uid, "step", step.what, dict(step.facts)))
            if "channel" not in step.facts or "event" in step.facts:  # the step of a touch, not of a message
                events += [TraceEvent(step.at, uid, "count", name) for name in _COUNTED.get(step.what, ())]
            if reason := step.facts.get("reason"):
                events.append(TraceEvent(step.at, uid, "count", f"touch_drops.{reason}"))
        return events

    async def _rows(self, uid: str) -> list[TraceEvent]:
        async with self._database.reading() as sql:
            log = (await sql.execute(select(DEBUG_LOG).where(DEBUG_LOG.c.send_uid == uid))).all()
            touches = (await sql.execute(select(USER_TOUCHES).where(USER_TOUCHES.c.send_uid == uid))).all()
        events = [TraceEvent(row.created_at, uid, "row", f"{DEBUG_LOG.name}: {row.event.get('type')}", {"uid": row.uid})
                  for row in log]
        events += [TraceEvent(row.created_at, uid, "row", USER_TOUCHES.name, {"uid": row.uid, "channel": row.channel})
                   for row in touches]
        for lane in self._valkey.lanes:
            waiting = await find(lane, TO_LOG.queue, lambda entry: _is_about(entry, uid))
            events += [TraceEvent(None, uid, "now", f"a row of {entry.table} waits to be written")
                       for entry in waiting.values()]
        return events

    async def _jobs(self, uids: set[str]) -> list[TraceEvent]:
        events = []
        for queue in (ROOMS_QUEUE, ""):
            found = await find(self._valkey, job_list(queue), lambda record: not uids.isdisjoint(
                value for value in record.kwargs.values() if isinstance(value, str)))
            events += [TraceEvent(record.queued_at, "", "job", f"{record.name} waits", {"queue": queue or "usual"})
                       for record in found.values()]
        return events

    async def _now(self, uid: str) -> list[TraceEvent]:
        for lane in self._valkey.lanes:
            if found := await self._now_in(lane, uid):
                return found
        return []

    async def _now_in(self, valkey: Valkey, uid: str) -> list[TraceEvent]:
        if waits := await PENDING.get(valkey, uid):
            remaining = await REMAINING.at(uid).members(valkey)
            return [TraceEvent(waits.score, uid, "now", "waits for news", {"messages": sorted(remaining)})]
        if place := await whereabouts(valkey, TO_SEND, uid):
            return [TraceEvent(None, uid, "now", place)]
        for channel, outlet in self._outlets.items():
            more: dict[str, Place] = {f"waits in {place.logical}": place for place in outlet.waiting}
            more |= {f"waits for another try in {place.logical}": place for place in outlet.retrying}
            if place := await whereabouts(valkey, outlet.work, uid, more):
                return [TraceEvent(None, uid, "now", place, {"channel": channel})]
            if await outlet.is_with_provider(valkey, uid, await traced(valkey, uid)):
                return [TraceEvent(None, uid, "now", "the provider has it, news is awaited", {"channel": channel})]
            if await outlet.intent(uid).exists(valkey):
                return [TraceEvent(None, uid, "now", "the provider is being asked", {"channel": channel})]
        return []


def _is_about(entry: LogEntry, uid: str) -> bool:
    return bool(entry.fields.get("send_uid") == uid)
