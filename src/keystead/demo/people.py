"""Who lives in the town, and what each of them is like. Pure: the same seed gives the same people, for ever."""

import math
import random
from bisect import bisect
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final, Literal
from zoneinfo import ZoneInfo

from keystead.demo.places import PLACES, phone_number

PROVIDER: Final = "demo-town"
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
Kind = Literal["regular", "casual", "passer-by"]
Channel = Literal["push", "sms", "email"]
Preset = Literal["morning", "afternoon", "evening"]
_HEAVIEST: Final = list(accumulate(place.weight for place in PLACES))


@dataclass(frozen=True, slots=True)
class Wish:
    """When somebody wants to be reminded, and how."""

    channel: Literal["push", "sms", "email", "all"]
    preset: Preset
    days: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """One of the people. An address that is empty is one they do not give."""

    number: int
    provider_sub: str
    given_name: str
    family_name: str
    city: str
    zone: str
    kind: Kind
    email: str
    phone: str
    push_token: str
    platform: Literal["ios", "android"]
    wish: Wish
    clicks: float
    grumpy: bool
    seed: int

    @property
    def name(self) -> str:
        """As the town speaks of them."""
        return f"{self.given_name} in {self.city}"


def make_person(seed: int, number: int) -> Person:
    """The nth person of a town."""
    draw = random.Random(f"{seed}:person:{number}")
    place = PLACES[bisect(_HEAVIEST, draw.randrange(_HEAVIEST[-1]))]
    given, family = draw.choice(place.given), draw.choice(place.family)
    kind: Kind = draw.choices(("regular", "casual", "passer-by"), (25, 45, 30))[0]
    has_phone, has_email, has_app = draw.random() < 0.55, draw.random() < 0.8, draw.random() < 0.65
    if not (has_phone or has_email or has_app):
        has_email = True
    wish = Wish(
        draw.choices(("all", "push", "email", "sms"), (60, 20, 12, 8))[0],
        draw.choices(("morning", "afternoon", "evening"), (55, 15, 30))[0],
        draw.choices((DAYS, DAYS[1:6], (DAYS[1], DAYS[3], DAYS[5]), (DAYS[0], DAYS[6])), (60, 20, 12, 8))[0],
    )
    token = "".join(draw.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", k=22))
    return Person(
        number, f"{seed}-{number}", given, family, place.city, place.zone, kind,
        f"{given}.{family}.{seed}.{number}@example.{draw.choice(('com', 'net', 'org'))}".lower() if has_email else "",
        phone_number(place.numbers, number) if has_phone else "",
        f"ExponentPushToken[{token}]" if has_app else "", draw.choices(("ios", "android"), (45, 55))[0], wish,
        {"regular": 0.5, "casual": 0.25, "passer-by": 0.06}[kind] * draw.uniform(0.6, 1.4), draw.random() < 0.06, seed,
    )


def chance_of_return(kind: Kind, day: int) -> float:
    """How likely somebody comes on the nth day after joining: all on day 0, then a curve that falls and flattens."""
    if day <= 0:
        return 1.0
    if kind == "regular":
        return 0.6 + 0.3 * math.exp(-day / 10)
    if kind == "casual":
        return max(0.08, 0.6 / math.sqrt(day))
    return 0.15 * math.exp(-(day - 1) / 2)


def comes_on(person: Person, day: int) -> bool:
    """Whether they come on the nth day after joining, unless a message brings them."""
    draw = random.Random(f"{person.seed}:day:{person.number}:{day}").random()
    return draw < chance_of_return(person.kind, day)


def day_of(person: Person, joined_at: float, now: float) -> int:
    """How many days after joining it is, by the calendar where they live."""
    zone = ZoneInfo(person.zone)
    return (datetime.fromtimestamp(now, zone).date() - datetime.fromtimestamp(joined_at, zone).date()).days


def visiting_hour(person: Person, day: int) -> float:
    """At which hour of their day they come, if they do: more in the evening than in the morning."""
    hour: float = random.Random(f"{person.seed}:hour:{person.number}:{day}").triangular(7, 22.5, 18.5)
    return hour


def local_hour(person: Person, now: float) -> float:
    """The time of day where they live, in hours."""
    local = datetime.fromtimestamp(now, ZoneInfo(person.zone))
    return local.hour + local.minute / 60 + local.second / 3600


def is_awake(person: Person, now: float) -> bool:
    """Whether it is a time of day at which they would look at a phone."""
    return 7 <= local_hour(person, now) < 23
