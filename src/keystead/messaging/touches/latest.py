"""The latest touches of everybody, or of one channel, or those that went wrong: who, what, and what became of each.

Nothing of the words and addresses is read. What waits to be planned, and rows of the log that wait to be written, come
first; then the log, newest first. Rows are read after what waits, so a touch that moves on meanwhile is not missed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.engine import Valkey
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.messaging.touches.models import Channel, LogEntry, Touch
from keystead.messaging.touches.places import PAGE, purgatories, read
from keystead.messaging.touches.tables import ATTEMPT, BAD_ENDS, DEBUG_LOG, LISTED, PEOPLE, Fact
from keystead.patterns import WorkList
from keystead.store import Database

T = TypeVar("T")

# What a step of the log makes of a touch; a first step makes nothing of it yet.
STATUS: Final = {
    "send_stale": "stale", "send_event_improper": "improper", "send_unreachable": "unreachable",
    "send_reachable": "on its way", "send_retry": "tried again", "send_abandon": "given up",
    "send_unretryable": "failed", "send_success": "arrived",
}
# What is read of a step; the last four tell why it was no better.
FACTS: Final = ("type", "channel", "event", "reason", "why", "info.identifier", "info.error_identifier")
FAILED: Final = frozenset(STATUS[step] for step in BAD_ENDS)
WAITING_ITEMS: Final = PAGE  # of each list, the newest
LEAST_STEP: Final = 200  # bad ends that are looked at together where not all of them may be wanted
MOST_STEPS: Final = 10


@dataclass(slots=True)
class LatestTouch:
    """One touch of somebody. ``at``: when it was planned, or queued while it waits for that; ``changed_at``: its last
    step. ``status``: the best that is known of any destination; ``reason``: why it went no further, where that is
    known."""

    uid: str
    at: float
    user_sub: str = ""
    event: str = ""
    channel: str = ""
    status: str = "queued"
    reason: str = ""
    changed_at: float = 0.0

    @property
    def is_failed(self) -> bool:
        """Whether it went wrong. Somebody who was to be spared it had no use for it: nothing went wrong then."""
        return self.status in FAILED and not (self.status == "unreachable" and self.reason)


@dataclass(frozen=True, slots=True)
class LatestTouches:
    """Some of them, newest first; ``before`` asks for those that follow, None if there are none."""

    touches: list[LatestTouch]
    before: int | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """A row of the log, written or not: of the ones that are not, ``number`` is 0."""

    number: int
    uid: str
    user_sub: str
    kind: str
    channel: str
    event: str
    reason: str
    at: float


@dataclass(slots=True)
class _Waiting:
    """What has not reached the log yet."""

    touches: dict[str, Touch] = field(default_factory=dict)
    steps: list[_Step] = field(default_factory=list)


async def latest(
    valkey: Valkey, database: Database, *, most: int = 50, before: int | None = None, channel: Channel | None = None,
    failed: bool = False,
) -> LatestTouches:
    """The newest touches, and where to go on. Failed ones come in the order in which they failed, the last one first.

    Costs two queries, whatever the log holds. Failed ones of one channel are looked for among the latest failures; so
    fewer than ``most`` may be found although others follow. Of those that wait, only the newest come.
    """
    waiting = await _waiting(valkey) if before is None else _Waiting()
    async with database.reading() as sql:
        return await _Look(sql, waiting, channel, failed).page(most, before)


class _Look:
    """One look at the log."""

    def __init__(self, sql: AsyncConnection, waiting: _Waiting, channel: Channel | None, failed: bool) -> None:
        self._sql, self._waiting, self._channel, self._failed = sql, waiting, channel, failed
        self._decisive = BAD_ENDS if failed else (ATTEMPT,)  # steps that bring a touch into the list

    async def page(self, most: int, before: int | None) -> LatestTouches:
        touches = await self._not_logged()
        seen, found = {touch.uid for touch in touches}, touches[:most]
        step = max(most + 1, LEAST_STEP) if self._failed and self._channel else most + 1
        for _ in range(MOST_STEPS):
            heads = await self._heads(step, before)
            known = await self._known([uid for _, uid in heads])
            for number, uid in heads:
                if len(found) == most:
                    return LatestTouches(found, number + 1 if before is None else before)
                before = number
                if uid not in known:
                    continue  # its person was erased between the two queries
                touch, decided = known[uid]
                if uid not in seen and decided == number and self._wants(touch):
                    seen.add(uid)
                    found.append(touch)
            if len(heads) < step:
                return LatestTouches(found)
        return LatestTouches(found, before)

    async def _not_logged(self) -> list[LatestTouch]:
        """Those of which something waits that would bring them into the list; newest first."""
        uids = dict.fromkeys(step.uid for step in self._waiting.steps if step.kind in self._decisive)
        found = {uid: touch for uid, (touch, _) in (await self._known(list(uids))).items()}
        for uid, touch in self._waiting.touches.items():
            if uid not in found:
                found[uid] = LatestTouch(uid, touch.queued_at, touch.user_sub, touch.touch_point_event_slug,
                                         touch.channel, changed_at=touch.queued_at)
        return sorted(filter(self._wants, found.values()), reverse=True,
                      key=lambda touch: touch.changed_at if self._failed else touch.at)

    def _wants(self, touch: LatestTouch) -> bool:
        return self._channel in (None, touch.channel) and (touch.is_failed or not self._failed)

    async def _heads(self, most: int, before: int | None) -> Sequence[tuple[int, str]]:
        """The rows that stand for touches: their first steps, or how they ended; number and uid of the touch."""
        channel, reason, number = Fact("channel"), Fact("reason"), DEBUG_LOG.c.id
        query = select(number, DEBUG_LOG.c.send_uid)
        if self._failed or self._channel is not None:
            of_channel = channel.is_(None) if self._failed else channel == self._channel
            query = query.where(LISTED, of_channel, reason.is_(None))
            if self._sql.dialect.name == "postgresql":
                # It takes rows in the order of an index only if told all of it, though here these two do not vary;
                # SQLite only if not told.
                query = query.order_by(channel.desc(), reason.desc())
        else:
            query = query.where(Fact("type") == ATTEMPT)
        if before is not None:
            query = query.where(number < before)
        rows = (await self._sql.execute(query.order_by(number.desc()).limit(most))).all()
        return [(row[0], row[1]) for row in rows]

    async def _known(self, uids: list[str]) -> dict[str, tuple[LatestTouch, int]]:
        """Each of these touches with the number of the last row that brings it into the list."""
        log, steps = DEBUG_LOG.c, list[_Step]()
        for some in _parts(uids):
            query = select(log.id, log.send_uid, PEOPLE.c.sub, log.created_at, *map(Fact, FACTS)).select_from(
                DEBUG_LOG.join(PEOPLE, PEOPLE.c.id == log.user_id)).where(log.send_uid.in_(some)).order_by(log.id)
            steps += [_step(*row) for row in (await self._sql.execute(query)).all()]
        of_these = set(uids)
        found: dict[str, tuple[LatestTouch, int]] = {}
        for step in (*steps, *(step for step in self._waiting.steps if step.uid in of_these)):
            touch, decided = found.get(step.uid) or (LatestTouch(step.uid, step.at, step.user_sub), 0)
            _apply(touch, step)
            found[step.uid] = touch, step.number if step.kind in self._decisive else decided
        return found


def _apply(touch: LatestTouch, step: _Step) -> None:
    touch.changed_at = max(touch.changed_at, step.at)
    if step.kind == ATTEMPT:
        touch.event, touch.channel = step.event, step.channel
        return
    if touch.status != "arrived":
        touch.status, touch.reason = STATUS.get(step.kind, touch.status), step.reason


async def _waiting(valkey: Valkey) -> _Waiting:
    """The newest that waits in each lane, or is in the hands of a worker."""
    found = _Waiting()
    for lane in valkey.lanes:
        found.touches |= {touch.uid: touch for touch in await _held(lane, TO_SEND)}
    for lane in valkey.lanes:
        found.steps += [step for entry in await _held(lane, TO_LOG) if (step := _step_of(entry)) is not None]
    return found


async def _held(lane: Valkey, work: WorkList[T]) -> list[T]:
    queued = [value async for _, value in read(lane, work.queue, WAITING_ITEMS)]
    taken = [value for place in await purgatories(lane, work) async for _, value in read(lane, place, WAITING_ITEMS)]
    return taken + queued


def _step_of(entry: LogEntry) -> _Step | None:
    if entry.table != DEBUG_LOG.name:
        return None
    fields, event = entry.fields, entry.fields.get("event")
    at = fields.get("created_at")
    if not isinstance(event, dict) or not isinstance(at, int | float):  # the log will say what is wrong with it
        return None
    info = event.get("info")
    known = {**event, **{f"info.{name}": value for name, value in info.items()}} if isinstance(info, dict) else event
    return _step(0, str(fields.get("send_uid")), str(fields.get("user_sub")), at, *map(known.get, FACTS))


def _step(number: int, uid: str, user_sub: str, at: float, kind: Any, channel: Any, event: Any, *reasons: Any) -> _Step:
    return _Step(number, uid, user_sub, str(kind), str(channel or ""), str(event or ""),
                 next((str(reason) for reason in reasons if reason), ""), at)


def _parts(uids: Sequence[str]) -> Iterable[Sequence[str]]:
    for first in range(0, len(uids), PAGE):
        yield uids[first:first + PAGE]
