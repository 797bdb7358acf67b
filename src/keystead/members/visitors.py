"""Devices that visit: they get a name, and what they do is queued to be written down."""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from enum import StrEnum
from typing import Final

from sqlalchemy import insert

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.ids import UserSub
from keystead.keys import FlagRef, ListRef
from keystead.members.keys import CLICK_REPEATED, CLICKS, LINK_REPEATED, LINKS, REPEAT_SECONDS, VISITOR_UID
from keystead.members.models import VisitorClick, VisitorLink
from keystead.members.tables import VISITORS
from keystead.members.utms import Utm
from keystead.store import Database
from keystead.telemetry import counts

QUEUE: Final = Script("keystead.members", "scripts/queue.lua")
MOST_QUEUED: Final = 5000
_SIGNATURE: Final = 8

counts.describe("visitors_queued", "clicks and links of devices, by queue and by what became of them")


class Source(StrEnum):
    """What kind of device it is."""

    BROWSER = "browser"
    IOS = "ios"
    ANDROID = "android"


class Visitors:
    """Names devices, and queues what they do. ``secret`` signs the names that are given."""

    def __init__(self, valkey: Valkey, database: Database, clock: Clock, secret: bytes) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._secret = secret

    async def create(self, source: Source) -> str:
        """A new device; returns its uid, which is signed."""
        stem = f"v_{secrets.token_urlsafe(13)}"
        uid = stem + self._signature(stem)
        row = {"uid": uid, "source": Source(source).value, "created_at": self._clock.now()}
        async with self._database.transaction() as sql:
            await sql.execute(insert(VISITORS).values(row))
        return uid

    def is_signed(self, uid: str) -> bool:
        """Whether the uid is one that was given here, as opposed to one that somebody made up. Needs no database."""
        signature = self._signature(uid[:-_SIGNATURE])
        return hmac.compare_digest(signature.encode(), uid[-_SIGNATURE:].encode(errors="replace"))

    async def seen(self, uid: str | None, sub: UserSub, *, source: Source) -> str:
        """Queue that the person uses this device. Returns the uid to go on with: a new one if this cannot be one.

        What was said of the person within the last minute, or comes while the queue is full, is dropped without a word.
        Whether the device exists is found out later; if it does not, nothing is written down.
        """
        chosen = await self._usable(uid, source)
        await self._queue_link(chosen, sub, self._clock.now())
        return chosen

    async def clicked(self, uid: str | None, utm: Utm, *, source: Source, sub: UserSub | None = None) -> str:
        """Queue that the device came through a campaign, and is used by the person if that is known. See ``seen``."""
        chosen, now = await self._usable(uid, source), self._clock.now()
        if sub is not None:
            await self._queue_link(chosen, sub, now)
        click = VisitorClick(
            chosen, utm.utm_source, now, utm.utm_medium, utm.utm_campaign, utm.utm_term, utm.utm_content
        )
        await self._queue("clicks", CLICKS.queue, CLICK_REPEATED.at(chosen), CLICKS.queue_key.codec.encode(click))
        return chosen

    async def _usable(self, uid: str | None, source: Source) -> str:
        return uid if uid is not None and VISITOR_UID.accepts(uid) else await self.create(source)

    async def _queue_link(self, uid: str, sub: UserSub, at: float) -> None:
        raw = LINKS.queue_key.codec.encode(VisitorLink(uid, sub, at))
        await self._queue("links", LINKS.queue, LINK_REPEATED.at(sub), raw)

    async def _queue(
        self, name: str, queue: ListRef[VisitorClick] | ListRef[VisitorLink], repeated: FlagRef, raw: bytes
    ) -> None:
        told = await QUEUE(
            self._valkey, keys=[queue, repeated], args=[MOST_QUEUED, REPEAT_SECONDS * 1000, raw], decode=int
        )
        counts.add("visitors_queued", queue=name, outcome={1: "queued", 0: "repeated"}.get(told, "full"))

    def _signature(self, stem: str) -> str:
        digest = hmac.digest(self._secret, b"visitor:" + stem.encode(errors="replace"), hashlib.sha256)
        return urlsafe_b64encode(digest)[:_SIGNATURE].decode()
