"""What was sent, whether it arrived, and what is still on its way: to one person, and the latest to anybody."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec
from sqlalchemy import and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.edge import Page, PageRequest, page_of
from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.ids import UserSub
from keystead.messaging.sending import traced
from keystead.messaging.touches.keys import BY_USER, PENDING
from keystead.messaging.touches.latest import STATUS, LatestTouches, latest
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.tables import ATTEMPT, DEBUG_LOG, PEOPLE, USER_TOUCHES, Fact
from keystead.store import Database

_NO_NUMBER: Final = 2**63 - 1  # of a touch that is not in the log yet


class _Place(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Where a touch stands among those of a person: by its time, then by the number of its first row."""

    at: float
    number: Annotated[int, msgspec.Meta(ge=0, le=_NO_NUMBER)]
    uid: str


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

    async def of(self, user_sub: UserSub, *, most: int = 50) -> list[PastTouch]:
        """The newest touches of a person, newest first: the first page."""
        return list((await self.page(user_sub, PageRequest(most))).items)

    async def page(self, user_sub: UserSub, request: PageRequest) -> Page[PastTouch]:
        """What a person was sent, newest first, page by page.

        One that has just ended may be missing for the moment that the log needs.
        """
        try:
            BY_USER.at(user_sub)
        except DeclarationError:  # nobody can be called so
            return Page(())
        after, valkey = request.position(_Place), self._valkey.lane_for(user_sub)
        pending = await BY_USER.at(user_sub).members(valkey)
        async with self._database.reading() as sql:
            numbers = await self._heads(sql, user_sub, request.limit + 1, after)
            touches = await self._told(sql, list(numbers))
            known = select(DEBUG_LOG.c.send_uid).where(DEBUG_LOG.c.send_uid.in_(list(pending)))
            logged = set((await sql.execute(known)).scalars()) if pending else set()
        placed = [(_Place(touch.at, numbers[uid], uid), touch) for uid, touch in touches.items()]
        for uid in pending:
            waits = await PENDING.get(valkey, uid) is not None
            if uid in touches:
                touches[uid].waits = waits
            elif uid not in logged and (touch := await self._on_the_way(valkey, uid, waits)) is not None:
                placed.append((_Place(touch.at, _NO_NUMBER, uid), touch))
        rest = [one for one in placed if after is None or one[0] < after]
        page = page_of(sorted(rest, key=lambda one: one[0], reverse=True), request, lambda one: one[0])
        return Page(tuple(touch for _, touch in page.items), page.next_cursor)

    async def latest(
        self, *, most: int = 50, before: int | None = None, channel: Channel | None = None, failed: bool = False
    ) -> LatestTouches:
        """The newest touches of anybody, of a channel if one is given, and only those that went wrong if asked for.

        See ``latest``, also for what it costs. ``before`` goes on where an answer ended.
        """
        return await latest(self._valkey, self._database, most=most, before=before, channel=channel, failed=failed)

    async def _heads(
        self, sql: AsyncConnection, user_sub: UserSub, most: int, after: _Place | None
    ) -> dict[str, int]:
        """Uids of the newest touches in the log, with the numbers of their first rows."""
        log = DEBUG_LOG.c
        person = select(PEOPLE.c.id).where(PEOPLE.c.sub == user_sub).scalar_subquery()
        query = select(log.send_uid, log.id).where(log.user_id == person, Fact("type") == ATTEMPT)
        if after is not None:
            query = query.where(or_(log.created_at < after.at,
                                    and_(log.created_at == after.at, log.id < after.number)))
        rows = await sql.execute(query.order_by(log.created_at.desc(), log.id.desc()).limit(most))
        return {row.send_uid: row.id for row in reversed(rows.all())}

    async def _told(self, sql: AsyncConnection, uids: list[str]) -> dict[str, PastTouch]:
        """What the log and the messages that arrived tell of these touches."""
        if not uids:
            return {}
        log, touches = DEBUG_LOG.c, dict[str, PastTouch]()
        rows = select(log.send_uid, log.event, log.created_at).where(log.send_uid.in_(uids)).order_by(log.id)
        for uid, event, at in (await sql.execute(rows)).all():
            _apply(touches.setdefault(uid, PastTouch(uid, at)), event)
        arrived = select(USER_TOUCHES.c.send_uid, USER_TOUCHES.c.destination).where(USER_TOUCHES.c.send_uid.in_(uids))
        for uid, destination in (await sql.execute(arrived)).all():
            touches[uid].arrived.append(destination)
            touches[uid].status = "arrived"
        return touches

    async def _on_the_way(self, valkey: Valkey, uid: str, waits: bool) -> PastTouch | None:
        """What the log does not know yet; the index also holds uids of messages, which have no event of their own."""
        steps = await traced(valkey, uid)
        if not steps or "event" not in steps[0].facts:
            return None
        first = steps[0]
        return PastTouch(uid, first.at, str(first.facts["event"]), str(first.facts.get("channel", "")),
                         "on its way" if waits else steps[-1].what, waits=waits)


def _apply(touch: PastTouch, event: dict[str, Any]) -> None:
    kind = str(event.get("type", ""))
    if kind == ATTEMPT:
        touch.event, touch.channel = str(event.get("event", "")), str(event.get("channel", ""))
        return
    if touch.status != "arrived":
        touch.status = STATUS.get(kind, touch.status)
    if kind == "send_reachable":
        touch.message, touch.destinations = dict(event.get("message", {})), list(event.get("destinations", ()))
    touch.reason = str(event.get("reason") or event.get("why") or touch.reason)
