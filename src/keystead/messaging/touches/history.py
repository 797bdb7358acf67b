"""What was sent, whether it arrived, and what is still on its way: to one person, and the latest to anybody."""

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.ids import UserSub
from keystead.messaging.sending import traced
from keystead.messaging.touches.keys import BY_USER, PENDING
from keystead.messaging.touches.latest import STATUS, LatestTouches, latest
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.tables import DEBUG_LOG, PEOPLE, USER_TOUCHES
from keystead.store import Database

MOST_ROWS: Final = 2000


@dataclass(slots=True)
class PastTouch:
    """One touch of a person. ``status`` is the best that is known of any destination. ``waits``: news is awaited."""

    uid: str
    at: float
    event: str = ""
    channel: str = ""
    status: str = "queued"
    message: dict[str, Any] = field(default_factory=dict)
    destinations: list[str] = field(default_factory=list)
    arrived: list[str] = field(default_factory=list)
    reason: str = ""
    waits: bool = False


class History:
    """Reads what people were sent."""

    def __init__(self, valkey: Valkey, database: Database) -> None:
        self._valkey, self._database = valkey, database

    async def of(self, user_sub: UserSub, *, most: int = 50, before: float | None = None) -> list[PastTouch]:
        """The newest touches of a person, before an instant if one is given; newest first.

        One that has just ended may be missing for the moment that the log needs.
        """
        try:
            BY_USER.at(user_sub)
        except DeclarationError:  # nobody can be called so
            return []
        touches = await self._logged(user_sub, most, before)
        if before is None:
            valkey = self._valkey.lane_for(user_sub)
            for uid in await BY_USER.at(user_sub).members(valkey):
                await self._on_the_way(valkey, uid, touches)
        return sorted(touches.values(), key=lambda touch: touch.at, reverse=True)[:most]

    async def latest(
        self, *, most: int = 50, before: int | None = None, channel: Channel | None = None, failed: bool = False
    ) -> LatestTouches:
        """The newest touches of anybody, of a channel if one is given, and only those that went wrong if asked for.

        See ``latest``, also for what it costs. ``before`` goes on where an answer ended.
        """
        return await latest(self._valkey, self._database, most=most, before=before, channel=channel, failed=failed)

    async def _logged(self, user_sub: UserSub, most: int, before: float | None) -> dict[str, PastTouch]:
        person = select(PEOPLE.c.id).where(PEOPLE.c.sub == user_sub).scalar_subquery()
        rows = select(DEBUG_LOG.c.send_uid, DEBUG_LOG.c.event, DEBUG_LOG.c.created_at).where(
            DEBUG_LOG.c.user_id == person)
        if before is not None:
            rows = rows.where(DEBUG_LOG.c.created_at < before)
        newest = rows.order_by(DEBUG_LOG.c.created_at.desc(), DEBUG_LOG.c.id.desc()).limit(min(most * 10, MOST_ROWS))
        touches: dict[str, PastTouch] = {}
        async with self._database.reading() as sql:
            for uid, event, at in reversed((await sql.execute(newest)).all()):
                _apply(touches.setdefault(uid, PastTouch(uid, at)), event)
            arrived = select(USER_TOUCHES.c.send_uid, USER_TOUCHES.c.destination).where(
                USER_TOUCHES.c.send_uid.in_(list(touches)))
            for uid, destination in (await sql.execute(arrived)).all():
                touches[uid].arrived.append(destination)
                touches[uid].status = "arrived"
        return touches

    async def _on_the_way(self, valkey: Valkey, uid: str, touches: dict[str, PastTouch]) -> None:
        """What the log does not know yet; the index also holds uids of messages, which have no event of their own."""
        waits = await PENDING.get(valkey, uid) is not None
        if uid not in touches:
            steps = await traced(valkey, uid)
            if not steps or "event" not in steps[0].facts:
                return
            first = steps[0]
            touches[uid] = PastTouch(uid, first.at, str(first.facts["event"]), str(first.facts.get("channel", "")),
                                     "on its way" if waits else steps[-1].what)
        touches[uid].waits = waits


def _apply(touch: PastTouch, event: dict[str, Any]) -> None:
    kind = str(event.get("type", ""))
    if kind == "send_attempt":
        touch.event, touch.channel = str(event.get("event", "")), str(event.get("channel", ""))
        return
    if touch.status != "arrived":
        touch.status = STATUS.get(kind, touch.status)
    if kind == "send_reachable":
        touch.message, touch.destinations = dict(event.get("message", {})), list(event.get("destinations", ()))
    touch.reason = str(event.get("reason") or event.get("why") or touch.reason)
