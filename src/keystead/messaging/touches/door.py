"""The library door of messaging: one object to write to people with.

::

    await messaging.touch(user, "daily_reminder", channel="sms", parameters={"name": "Ada", "url": url})
    await messaging.text("+15555550123", "Your code is 123456", lane="high")
"""

from collections.abc import Mapping
from typing import Any

from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub, new_uid
from keystead.jobs import JobRef
from keystead.messaging.email import Email
from keystead.messaging.push import Push
from keystead.messaging.sms import Sms
from keystead.messaging.touches.models import CHANNELS, Channel, Touch, TouchUid
from keystead.messaging.touches.outlets import Outlets
from keystead.messaging.touches.points import TouchPoint, TouchPoints
from keystead.messaging.touches.touches import Touches


class Messaging:
    """Writes to people. Everything is queued, and sent by the couriers; each uid is sent once within a day."""

    def __init__(
        self, touches: Touches, points: TouchPoints, outlets: Outlets, sms: Sms, email: Email, push: Push
    ) -> None:
        self._touches, self._points, self._outlets = touches, points, outlets
        self._sms, self._email, self._push = sms, email, push

    async def touch(
        self, user: UserSub | str, slug: str, *, channel: Channel | None = None,
        parameters: Mapping[str, Any] | None = None, on_success: JobRef | None = None,
        on_failure: JobRef | None = None, uid: str | None = None, lane: str = "normal",
    ) -> tuple[TouchUid, ...]:
        """Tell a person of an event; gives the uid of each touch that was queued.

        Without a channel there is one touch for each on which the person can be reached and the event has a message;
        its uid then ends with the channel, and the callbacks run for each. If there is none, one is queued all the
        same, and fails as unreachable: a callback always runs. ``NotFound`` for an event that nobody declared,
        ``Invalid`` for parameters that do not fit it, ``LimitReached`` while too many touches wait.
        """
        sub, given = UserSub(user), dict(parameters or {})
        if channel is None:
            channels = await self._reachable(sub, await self._point(slug, given))
        else:
            channels = (channel,)
            if not self._surely_fits(slug, given):
                await self._point(slug, given)
        stem = uid if uid is not None or channel is not None else new_uid("tch")
        made = [self._touches.make(
            sub, slug, channel=one, parameters=given, success=on_success, failure=on_failure, lane=lane,
            uid=stem if channel is not None else f"{stem}_{one}",
        ) for one in channels]
        # Accepted for one channel is accepted for all: who was refused in between would ask again, and be heard twice.
        return tuple([await self._queued(touch, limited=touch is made[0]) for touch in made])

    async def text(
        self, to: str, body: str, *, on_success: JobRef | None = None, on_failure: JobRef | None = None,
        uid: str = "", lane: str = "normal", user: str = "",
    ) -> str:
        """Send a text to a number, whoever's it is; gives its uid. People are not spared what is sent like this."""
        return await self._sms.queue(to, body, success=on_success, failure=on_failure, uid=uid, lane=lane,
                                     user_sub=user)

    async def email(
        self, to: str, subject: str, template: str, parameters: Mapping[str, Any] | None = None, *,
        on_success: JobRef | None = None, on_failure: JobRef | None = None, uid: str | None = None,
        lane: str = "normal", user: str = "",
    ) -> str:
        """Send an email made of a template to an address; gives its uid."""
        return await self._email.queue(to, subject, template, parameters, success=on_success, failure=on_failure,
                                       uid=uid, lane=lane, user_sub=user)

    async def push(
        self, token: str, title: str, body: str, *, channel_id: str = "default", on_success: JobRef | None = None,
        on_failure: JobRef | None = None, uid: str = "", lane: str = "normal", user: str = "",
    ) -> str:
        """Send a push message to a device; gives its uid."""
        return await self._push.queue(token, title=title, body=body, channel_id=channel_id, success=on_success,
                                      failure=on_failure, uid=uid, lane=lane, user_sub=user)

    def _surely_fits(self, slug: str, parameters: dict[str, Any]) -> bool:
        """Spares the server a question for each touch: an event that was declared a second ago, and fits, is taken."""
        point = self._points.lately(slug)
        if point is None:
            return False
        try:
            point.rules.check(parameters)
        except Invalid:
            return False
        return True

    async def _point(self, slug: str, parameters: dict[str, Any]) -> TouchPoint:
        point = (await self._points.named([slug])).get(slug)
        if point is None:
            raise NotFound(f"there is no touch point {slug[:60]!r}")
        point.rules.check(parameters)
        return point

    async def _reachable(self, sub: UserSub, point: TouchPoint) -> tuple[Channel, ...]:
        offered = [channel for channel in CHANNELS if point.messages.of(channel)]
        if not offered:
            raise Invalid(f"the touch point {point.event_slug} has no messages")
        found = [channel for channel in offered if (await self._outlets[channel].addresses([sub])).get(sub)]
        return tuple(found or offered[:1])

    async def _queued(self, touch: Touch, *, limited: bool) -> TouchUid:
        await self._touches.queue(touch, limited=limited)
        return TouchUid(touch.uid)
