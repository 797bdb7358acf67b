"""Queueing touches: each is accepted once, counted, and refused when too many wait."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import DeclarationError, Invalid, LimitReached
from keystead.ids import UserSub, new_uid
from keystead.jobs import JobRef
from keystead.messaging.sending import Lane, trace
from keystead.messaging.touches.callbacks import check_callback
from keystead.messaging.touches.keys import BY_USER, QUEUED, TO_SEND
from keystead.messaging.touches.models import CHANNELS, Channel, Touch, TouchUid
from keystead.messaging.touches.points_names import check_slug
from keystead.messaging.touches.stats import SENDS
from keystead.patterns import Once, Writes, once
from keystead.settings import MessagingSettings
from keystead.tracing import carried

MOST_QUEUED: Final = 10_000
MOST_BYTES: Final = 64 * 1024  # of an event's parameters
MOST_CALLBACK_BYTES: Final = 16 * 1024  # of both together; they are stored with every touch
FULL_SECONDS: Final = 15.0
_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,120}")


class Touches:
    """Accepts touches."""

    def __init__(
        self, valkey: Valkey, clock: Clock, settings: MessagingSettings | None = None, *, most_queued: int = MOST_QUEUED
    ) -> None:
        self._valkey, self._clock, self._most = valkey, clock, most_queued
        self._settings = settings or MessagingSettings()

    async def send(
        self, user_sub: UserSub, slug: str, *, channel: Channel, parameters: Mapping[str, Any] | None = None,
        success: JobRef | None = None, failure: JobRef | None = None, uid: str | None = None, lane: str = "normal",
        any_hour: bool = False,
    ) -> TouchUid:
        """Queue a touch and say its uid. Whoever gives the uid may ask again within a day: it is sent once.

        ``LimitReached`` when too many wait; nothing was queued then. ``success`` or ``failure`` runs later, once.
        """
        touch = self.make(user_sub, slug, channel=channel, parameters=parameters, success=success, failure=failure,
                          uid=uid, lane=lane, any_hour=any_hour)
        await self.queue(touch)
        return TouchUid(touch.uid)

    async def queue(self, touch: Touch, *, limited: bool = True) -> bool:
        """Queue a touch that was made before; False if its uid was seen within a day. ``LimitReached``, unless it is
        not to be ``limited``: it belongs to one that was accepted."""
        valkey = self._valkey.lane_for(touch.user_sub)
        writes = Writes(valkey.layout)
        self.send_writes(writes, touch)
        limit = (TO_SEND.queue, self._most) if limited else None
        done = await once(valkey, QUEUED.at(touch.uid), writes, limit=limit)
        if done is Once.FULL:
            raise LimitReached(f"{self._most:,} touches wait already; try again later",
                               retry_after_seconds=FULL_SECONDS)
        return done is Once.DONE

    async def queue_many(self, touches: list[Touch]) -> list[Once]:
        """``queue`` for many in one round trip for each lane; what became of each."""
        outcomes: dict[int, Once] = {}
        for number, lane in enumerate(self._valkey.lanes):
            mine = [place for place, touch in enumerate(touches) if lane.layout.lane_of(touch.user_sub) == number]
            if mine:
                done = await self._queue_many(lane, [touches[place] for place in mine])
                outcomes |= zip(mine, done, strict=True)
        return [outcomes[place] for place in range(len(touches))]

    async def _queue_many(self, valkey: Valkey, touches: list[Touch]) -> list[Once]:
        async with valkey.pipeline(transaction=False) as pipeline:
            waiting = []
            for touch in touches:
                writes = Writes(valkey.layout)
                self.send_writes(writes, touch)
                waiting.append(once(pipeline, QUEUED.at(touch.uid), writes, limit=(TO_SEND.queue, self._most)))
            await pipeline.execute()
        return [await one for one in waiting]

    def make(
        self, user_sub: UserSub, slug: str, *, channel: Channel, parameters: Mapping[str, Any] | None = None,
        success: JobRef | None = None, failure: JobRef | None = None, uid: str | None = None, lane: str = "normal",
        any_hour: bool = False,
    ) -> Touch:
        """A touch to be queued. ``Invalid`` says what is wrong with it. ``any_hour``: the person chose the time, so
        quiet hours do not hold it back."""
        check_slug(slug)
        if channel not in CHANNELS:
            raise Invalid(f"{str(channel)[:40]!r} is no channel; there are {', '.join(CHANNELS)}")
        if uid is not None and not _UID.fullmatch(uid):
            raise Invalid("the uid of a touch is made of 1 to 120 letters, digits, _ and -")
        try:
            BY_USER.at(user_sub)
        except DeclarationError:
            raise Invalid("this cannot be a person: their sub is text without colons and control characters") from None
        if lane not in tuple(Lane):
            raise Invalid(f"a touch goes by the lane {', '.join(Lane)}, not by {lane[:40]!r}")
        given = dict(parameters or {})
        _check_size("the parameters of an event", given, MOST_BYTES)
        check_callback(success)
        check_callback(failure)
        _check_size("callbacks", (success, failure), MOST_CALLBACK_BYTES)
        return Touch(uid or new_uid("tch"), user_sub, slug, channel, given, success, failure, self._clock.now(),
                     lane=lane, any_hour=any_hour, trace=carried())

    def send_writes(self, writes: Writes, touch: Touch) -> None:
        """What queueing a touch is, for a step of someone else with the same tag. It must happen once for each uid, and
        nobody is asked whether too many wait."""
        TO_SEND.queue.push_right(writes, touch)
        SENDS.tally().incr("queued", at=touch.queued_at).store(writes)
        BY_USER.at(touch.user_sub).add(writes, touch.uid)
        trace(writes, touch.uid, "queued", touch.queued_at, kept_seconds=self._settings.trace_seconds,
              event=touch.touch_point_event_slug, channel=touch.channel, lane=touch.lane)

    async def waiting(self) -> int:
        """How many wait to be sent."""
        return sum(await self._lengths())

    async def has_room(self, most: int = 1) -> bool:
        """Whether so many more would be accepted now, whosever they are: each lane has its own limit."""
        return max(await self._lengths()) + most <= self._most

    async def _lengths(self) -> list[int]:
        return [await TO_SEND.length(lane) for lane in self._valkey.lanes]


def _check_size(what: str, given: object, most: int) -> None:
    try:
        size = len(msgspec.json.encode(given))
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"{what} must be writable as JSON: {error}") from None
    if size > most:
        raise Invalid(f"{what} may take {most:,} bytes, these take {size:,}")
