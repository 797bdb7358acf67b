"""What people are spared: too many messages in a day, messages at night, and the same words twice.

What is urgent is exempt. Counts are read once for a batch and kept up while it is planned; two dispatchers at the same
moment may each let one message through that the other would have been the last to.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from keystead import dates
from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.members import Described
from keystead.messaging.sending import Lane
from keystead.messaging.touches.keys import DAY_COUNT, ERASED, RECENT_WORDS, SAME_SECONDS
from keystead.messaging.touches.models import Touch
from keystead.patterns import Writes
from keystead.settings import MessagingSettings

CAP: Final = "daily_cap"
QUIET: Final = "quiet_hours"
SAME: Final = "same_content"
GONE: Final = "erased"


class Guards:
    """The rules for one batch of touches."""

    def __init__(self, settings: MessagingSettings, now: float, people: Mapping[UserSub, Described]) -> None:
        self._settings, self._now, self._people = settings, now, people
        self._counts: dict[tuple[str, str, int], int] = {}
        self._words: dict[str, dict[str, float]] = {}
        self._erased: set[str] = set()
        self._local: dict[str | None, tuple[int, int]] = {}  # time zone → which day it is there, and which hour

    async def read(self, valkey: Valkey, touches: Iterable[Touch]) -> None:
        """Find out what these people got before; one round trip."""
        wanted = list(touches)
        days = {self._day_key(touch) for touch in wanted} if self._settings.person_day_messages else set()
        subs = {touch.user_sub for touch in wanted}
        async with valkey.pipeline(transaction=False) as pipeline:
            counts = {key: DAY_COUNT.at(*key).get(pipeline) for key in days}
            since = self._now - self._settings.same_content_seconds
            words = {sub: RECENT_WORDS.at(sub).range_by_score(pipeline, since) for sub in subs}
            erased = {sub: ERASED.at(sub).is_raised(pipeline) for sub in subs}
            if subs:
                await pipeline.execute()
        self._counts = {key: await count or 0 for key, count in counts.items()}
        self._words = {sub: dict(await found) for sub, found in words.items()}
        self._erased = {sub for sub, raised in erased.items() if await raised}

    def refusal(self, touch: Touch) -> str:
        """Why this touch is not to be sent, whatever it says; empty if nothing speaks against it."""
        if touch.user_sub in self._erased:
            return GONE
        if touch.lane == Lane.HIGH:
            return ""
        if not touch.any_hour and self._is_quiet(touch):
            return QUIET
        most = self._settings.person_day_messages
        return CAP if most and self._counts.get(self._day_key(touch), 0) >= most else ""

    def repeats(self, touch: Touch, digest: str) -> bool:
        """Whether the person was told these words just now."""
        return touch.lane != Lane.HIGH and self._settings.same_content_seconds > 0 and (
            digest in self._words.get(touch.user_sub, {})
        )

    def note(self, writes: Writes, touch: Touch, digest: str) -> None:
        """Remember that the person gets this, on the server and for the rest of the batch."""
        key, seconds = self._day_key(touch), min(self._settings.same_content_seconds, SAME_SECONDS)
        self._counts[key] = self._counts.get(key, 0) + 1
        DAY_COUNT.at(*key).increment(writes)
        if seconds > 0:
            recent = RECENT_WORDS.at(touch.user_sub)
            self._words.setdefault(touch.user_sub, {})[digest] = self._now
            writes.run(("ZREMRANGEBYSCORE", recent.name(writes.layout), "-inf", self._now - seconds), _nothing)
            recent.lasting(seconds).add(writes, digest, self._now)

    def _day_key(self, touch: Touch) -> tuple[str, str, int]:
        return touch.user_sub, touch.channel, self._there(touch)[0]

    def _is_quiet(self, touch: Touch) -> bool:
        start, end = self._settings.quiet_from_hour, self._settings.quiet_until_hour
        hour = self._there(touch)[1]
        return start <= hour < end if start <= end else hour >= start or hour < end

    def _there(self, touch: Touch) -> tuple[int, int]:
        """Day and hour where the person is."""
        person = self._people.get(UserSub(touch.user_sub))
        name = person.timezone if person is not None else None
        found = self._local.get(name)
        if found is None:
            zone = _zone_of(name or dates.LOS_ANGELES)
            hour = datetime.fromtimestamp(self._now, zone).hour
            found = self._local[name] = dates.unix_date(self._now, zone), hour
        return found


@cache
def _zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(dates.LOS_ANGELES)


def _nothing(reply: object) -> None:
    return None
