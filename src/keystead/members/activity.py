"""Who was active: today, this month, and so long after joining."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.members.counting import count_created
from keystead.members.stats import DAILY_ACTIVE, MONTHLY_ACTIVE, RETENTION
from keystead.members.users import Users

REMEMBERED_SECONDS: Final = 86400.0
MOST_REMEMBERED: Final = 10_000
# Another host's clock may be a little ahead.
SKEW_SECONDS: Final = 60.0
_FRESH_SECONDS: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What an activity was the first of: of the day, of the month, and for how many periods of retention.

    A day or month that was rotated already knows nobody any more; what comes for it is counted as late.
    """

    first_of_day: bool
    first_of_month: bool
    periods: int


class Activity:
    """Writes down that people were active. Remembers in this process when some of them joined."""

    def __init__(self, valkey: Valkey, users: Users, clock: Clock) -> None:
        self._valkey, self._users, self._clock = valkey, users, clock
        self._joined: OrderedDict[UserSub, tuple[float, float]] = OrderedDict()

    async def seen(
        self, sub: UserSub, *, created_at: float | None = None, at: float | None = None
    ) -> Seen | None:
        """The person was active ``at``, or now. One round trip, and a query for who is not remembered.

        ``created_at``: when they joined, if the caller knows. None when there is no such person: then nothing is
        counted. The day is that of the statistics and not of the person's own zone. ``Invalid`` for a time to come.
        """
        now = self._clock.now()
        if at is not None and at > now + SKEW_SECONDS:
            raise Invalid(f"nobody was active {at - now:.0f} seconds from now; give the unix time in seconds")
        at = now if at is None else min(at, now)
        joined_at = await self._joined_at(sub, now) if created_at is None else created_at
        if joined_at is None:
            return None
        async with self._valkey.pipeline(transaction=False) as pipeline:
            if at - joined_at <= _FRESH_SECONDS:
                # The count of somebody who has just joined may still be under way, and a cohort moves nobody whom it
                # does not know.
                count_created(pipeline, sub, joined_at)
            today = DAILY_ACTIVE.add(pipeline, sub, at=at)
            month = MONTHLY_ACTIVE.add(pipeline, sub, at=at)
            periods = RETENTION.active(pipeline, sub, joined_day=RETENTION.day_of(joined_at), at=at)
            await pipeline.execute()
        return Seen(await today == 1, await month == 1, max(0, await periods))

    async def _joined_at(self, sub: UserSub, now: float) -> float | None:
        remembered, until = self._joined.get(sub, (0.0, 0.0))
        if now < until:
            self._joined.move_to_end(sub)
            return remembered
        found = await self._users.created_at(sub)
        if found is not None:
            self._joined[sub] = found, now + REMEMBERED_SECONDS
            self._joined.move_to_end(sub)
            if len(self._joined) > MOST_REMEMBERED:
                self._joined.popitem(last=False)
        return found
