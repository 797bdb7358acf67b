"""Touch points: what may be said about an event, on which channel, and how a message is selected.

Every process keeps the points it used, until somebody changes one: a number in Valkey tells, asked once for each batch.
If it cannot be raised after a change, others learn of it when a minute is over. Who queues one touch after the other
may go by what was known within the last second.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Conflict, Corrupt, Invalid, NotFound
from keystead.ids import new_uid
from keystead.messaging.touches.keys import POINTS_VERSION
from keystead.messaging.touches.messages import Messages, etag_of, pack, unpack
from keystead.messaging.touches.points_builtin import BUILT_IN
from keystead.messaging.touches.points_names import check_slug
from keystead.messaging.touches.points_rules import Rules, check_messages, check_schema, check_strategy
from keystead.messaging.touches.selection import Strategy
from keystead.messaging.touches.tables import TOUCH_POINTS
from keystead.store import Database
from keystead.telemetry import logger

KEPT_SECONDS: Final = 60.0
LATELY_SECONDS: Final = 1.0
STEP: Final = 100

_log = logger("messaging.touches")


@dataclass(frozen=True, slots=True)
class TouchPoint:
    """One event that people are told of. ``messages_etag`` changes with the messages."""

    id: int
    uid: str
    event_slug: str
    event_schema: Mapping[str, Any]
    selection_strategy: Strategy
    messages: Messages
    messages_etag: str
    created_at: float
    rules: Rules = field(compare=False, repr=False)


class TouchPoints:
    """Stores and finds touch points."""

    def __init__(self, valkey: Valkey, database: Database, clock: Clock) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._kept: dict[str, TouchPoint | None] = {}
        self._version: int | None = None
        self._kept_until = self._asked_at = 0.0

    # -- reading ----------------------------------------------------------------------------------------------------

    async def named(self, slugs: Iterable[str]) -> dict[str, TouchPoint]:
        """The points with these names; who does not exist is left out. As new as the last change that was told."""
        wanted, now = set(slugs), self._clock.now()
        version = await POINTS_VERSION.at().get(self._valkey)
        self._asked_at = now
        if version != self._version or now >= self._kept_until:
            self._kept, self._version, self._kept_until = {}, version, now + KEPT_SECONDS
        kept = self._kept  # another task may begin a new one while we read
        missing = sorted(wanted - kept.keys())
        for first in range(0, len(missing), STEP):
            some = missing[first:first + STEP]
            found = {point.event_slug: point for point in await self._read(some)}
            kept.update((slug, found.get(slug)) for slug in some)
        return {slug: point for slug in wanted if (point := kept[slug]) is not None}

    def lately(self, slug: str) -> TouchPoint | None:
        """The point as it was within the last second, if that is known without asking anybody.

        Good for saying yes: whoever asked a second ago would have heard the same. Before saying no, ask ``named``.
        """
        is_new = 0.0 <= self._clock.now() - self._asked_at < LATELY_SECONDS
        return self._kept.get(slug) if is_new else None

    async def _read(self, slugs: list[str]) -> list[TouchPoint]:
        async with self._database.reading() as sql:
            rows = (await sql.execute(select(TOUCH_POINTS).where(TOUCH_POINTS.c.event_slug.in_(slugs)))).all()
        found = []
        for row in rows:
            try:
                found.append(_point(row))
            except Corrupt as error:  # to whoever sends a touch it is not there; touches of others go on
                _log.error("a touch point cannot be read", uid=row.uid, reason=str(error))
        return found

    async def find(self, uid: str) -> TouchPoint:
        """The point with this uid, from the database; ``NotFound``."""
        async with self._database.reading() as sql:
            row = (await sql.execute(select(TOUCH_POINTS).where(TOUCH_POINTS.c.uid == uid))).one_or_none()
        if row is None:
            raise NotFound(f"there is no touch point {uid[:60]}")
        return _point(row)

    async def search(self, *, slug: str = "", after: str = "", most: int = 50) -> list[TouchPoint]:
        """Points whose name begins with ``slug``, by name, from behind ``after`` on."""
        if "\0" in slug:  # no name has it, and not every database may be asked for it
            return []
        names = TOUCH_POINTS.c.event_slug
        query = select(TOUCH_POINTS).where(names > after, names.startswith(slug, autoescape=True)).order_by(names)
        async with self._database.reading() as sql:
            return [_point(row) for row in (await sql.execute(query.limit(most))).all()]

    # -- changes ----------------------------------------------------------------------------------------------------

    async def create(
        self, slug: str, schema: Mapping[str, Any], strategy: str, messages: Messages
    ) -> TouchPoint:
        """Add a point. ``Invalid`` says which rule it breaks; ``Conflict`` that the name is taken."""
        check_slug(slug)
        check_strategy(strategy)
        check_schema(schema)
        ordered = messages.in_order()
        check_messages(ordered, schema)
        uid = new_uid("tpo")
        values = {"uid": uid, "event_slug": slug, "event_schema": dict(schema), "selection_strategy": strategy,
                  "messages": pack(ordered), "created_at": self._clock.now()}
        async with self._database.transaction() as sql:
            inserted = await self._database.insert_many(sql, TOUCH_POINTS, [values], ignore_conflicts=True)
        if not inserted:
            raise Conflict(f"there is a touch point {slug} already")
        await self._changed()
        return await self.find(uid)

    async def change(
        self, uid: str, *, slug: str | None = None, schema: Mapping[str, Any] | None = None,
        strategy: str | None = None, messages: Messages | None = None, messages_etag: str | None = None,
    ) -> TouchPoint:
        """Change what is given. New messages need the etag of those they replace: ``Conflict`` if others came first."""
        point = await self.find(uid)
        new_slug, new_schema = slug or point.event_slug, point.event_schema if schema is None else schema
        new_messages = point.messages if messages is None else messages.in_order()
        check_slug(new_slug)
        check_strategy(strategy or point.selection_strategy)
        check_schema(new_schema)
        check_messages(new_messages, new_schema)
        if messages is not None and messages_etag is None:
            raise Invalid("new messages need messages_etag, that of the messages they replace: read these first")
        if messages is not None and messages_etag != point.messages_etag:
            raise Conflict("the messages were changed by somebody else meanwhile; read them again")
        values = {"event_slug": new_slug, "event_schema": dict(new_schema),
                  "selection_strategy": strategy or point.selection_strategy, "messages": pack(new_messages)}
        # Stored messages are compared as text, so that a change between reading and writing is seen.
        where = (TOUCH_POINTS.c.uid == uid, TOUCH_POINTS.c.messages == await self._stored(uid, point.messages_etag))
        try:
            async with self._database.transaction() as sql:
                changed = (await sql.execute(update(TOUCH_POINTS).where(*where).values(values))).rowcount
        except IntegrityError:
            raise Conflict(f"there is a touch point {new_slug} already") from None
        if not changed:
            raise Conflict("the messages were changed by somebody else meanwhile; read them again")
        await self._changed()
        return await self.find(uid)

    async def remove(self, uid: str) -> None:
        """Forget a point, with what was remembered and logged of it; ``NotFound``."""
        async with self._database.transaction() as sql:
            gone = (await sql.execute(delete(TOUCH_POINTS).where(TOUCH_POINTS.c.uid == uid))).rowcount
        if not gone:
            raise NotFound(f"there is no touch point {uid[:60]}")
        await self._changed()

    async def ensure_built_in(self) -> int:
        """Add the points that come with the program, where their names are free; says how many were added."""
        rows = [{"uid": new_uid("tpo"), "event_slug": one.slug, "event_schema": one.schema,
                 "selection_strategy": one.strategy, "messages": pack(one.messages.in_order()),
                 "created_at": self._clock.now()} for one in BUILT_IN]
        async with self._database.transaction() as sql:
            added = await self._database.insert_many(sql, TOUCH_POINTS, rows, ignore_conflicts=True)
        if added:
            await self._changed()
        return added

    async def _stored(self, uid: str, etag: str) -> str:
        async with self._database.reading() as sql:
            text: str | None = await sql.scalar(select(TOUCH_POINTS.c.messages).where(TOUCH_POINTS.c.uid == uid))
        if text is None or etag_of(text) != etag:
            raise Conflict("the messages were changed by somebody else meanwhile; read them again")
        return text

    async def _changed(self) -> None:
        self._asked_at = 0.0
        await POINTS_VERSION.at().increment(self._valkey)


def _point(row: Any) -> TouchPoint:
    return TouchPoint(row.id, row.uid, row.event_slug, row.event_schema, cast(Strategy, row.selection_strategy),
                      unpack(row.messages), etag_of(row.messages), row.created_at,
                      Rules(row.event_schema))
