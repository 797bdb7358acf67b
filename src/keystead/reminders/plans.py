"""Which words a reminder is about: one event for everybody, or several by how a person takes part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from keystead.ids import UserSub

ONE_SLUG: Final = "daily_reminder"
DAY_SECONDS: Final = 86_400
OLD_SECONDS: Final = 7 * DAY_SECONDS  # who joined longer ago is given more days before they count as away
_SUNDAY: Final = 6


@dataclass(frozen=True, slots=True)
class PersonFacts:
    """What the rest of the product knows of somebody. Whatever is None is left out of the message."""

    streak: int | None = None
    goal_days: int | None = None  # days a week that they set out to take part
    days_this_week: int = 0
    took_part_today: bool = False
    last_took_part_at: float | None = None


class FactsProvider(Protocol):
    """Asked for a hundred people at a time. Who is missing in the answer is nobody of whom something is known."""

    async def __call__(self, subs: Sequence[UserSub]) -> Mapping[UserSub, PersonFacts]: ...


async def nothing_known(subs: Sequence[UserSub]) -> Mapping[UserSub, PersonFacts]:
    """The provider of a product that keeps no streaks and goals."""
    return {}


@dataclass(frozen=True, slots=True)
class Situation:
    """One person at the moment their reminder is sent. ``was_engaged`` is what the last reminder found."""

    now: float
    zone: ZoneInfo
    joined_at: float
    was_engaged: bool | None
    facts: PersonFacts


@dataclass(frozen=True, slots=True)
class Choice:
    """The event; whether the sequence of its messages starts over; whether the person takes part, if that counts."""

    slug: str
    starts_over: bool = False
    engaged: bool | None = None


class Plan(Protocol):
    """How the event is chosen."""

    def choose(self, situation: Situation) -> Choice: ...


class OneEvent:
    """The same event for everybody."""

    def __init__(self, slug: str = ONE_SLUG) -> None:
        self._slug = slug

    def choose(self, situation: Situation) -> Choice:
        return Choice(self._slug)


class ByEngagement:
    """Other words for those who take part, for those who do not, and for those who are one day short of their goal.

    Someone takes part who did so within three days, or within one if they joined in the last week. Who did, and does no
    longer, begins the sequence of the others from its start.
    """

    def choose(self, situation: Situation) -> Choice:
        facts = situation.facts
        patience = (3 if situation.now - situation.joined_at > OLD_SECONDS else 1) * DAY_SECONDS
        last = facts.last_took_part_at
        engaged = last is not None and situation.now - last <= patience
        if facts.goal_days is not None and facts.days_this_week == facts.goal_days - 1 and not facts.took_part_today:
            sunday = datetime.fromtimestamp(situation.now, situation.zone).weekday() == _SUNDAY
            return Choice(f"{ONE_SLUG}_almost_miss_goal" if sunday else f"{ONE_SLUG}_almost_goal", engaged=engaged)
        if engaged:
            return Choice(f"{ONE_SLUG}_engaged", engaged=True)
        return Choice(f"{ONE_SLUG}_disengaged", starts_over=bool(situation.was_engaged), engaged=False)


def time_of_day(at: float, zone: ZoneInfo) -> str:
    """What people call the hour: morning from 3, afternoon from 12, evening from 17."""
    hour = datetime.fromtimestamp(at, zone).hour
    return "morning" if 3 <= hour < 12 else "afternoon" if 12 <= hour < 17 else "evening"
