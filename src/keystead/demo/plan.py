"""What happens in the town as a whole: how it grows, when a provider is ill, what its businesses want done. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

FIRST_PEOPLE: Final = 40
MOST_PEOPLE: Final = 400
NOISY: Final = "megamart-flyers"
QUIET: Final = ("corner-bakery", "riverside-books", "green-bikes", "la-luna-cafe", "north-pharmacy", "studio-weave")
_GROWTH_SECONDS: Final = 6.0
_SURE_SECONDS: Final = 20.0
_LONGEST_PAUSE_SECONDS: Final = 5.0  # of the quiet ones: whoever opens a page sees them soon, whatever the seed
_FIRST_ROUND_SECONDS: Final = 240.0
_ROUND_SECONDS: Final = 300.0
_LEFT_LETTERS: Final = 6
_MENDED_BY_OTHERS: Final = ("WarehouseSilent", "ConnectionError")
_FIRST_ILLNESS_SECONDS: Final = 50.0
_ILLNESS_EVERY_SECONDS: Final = 420.0
_ILLNESS_SECONDS: Final = 40.0


@dataclass(frozen=True, slots=True)
class Illness:
    """A provider that misbehaves from ``begins`` to ``ends``, in real seconds since the demo began."""

    channel: Literal["push", "sms", "email"]
    begins: float
    ends: float
    faults: dict[str, float]
    says: str


@dataclass(frozen=True, slots=True)
class Errand:
    """A job somebody wants done ``at`` real seconds since the demo began. Without a tenant it goes to the queue."""

    at: float
    job: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    tenant: str = ""
    cost: float = 1.0
    progress: bool = False


@dataclass(frozen=True, slots=True)
class Care:
    """What the operator does with jobs that failed for good, by their uids."""

    retried: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def rounds(seed: int) -> Iterator[float]:
    """When the operator looks after what failed, in real seconds since the demo began; without end."""
    draw, at = random.Random(f"{seed}:rounds"), 0.0
    while True:
        at += (_ROUND_SECONDS if at else _FIRST_ROUND_SECONDS) * draw.uniform(0.7, 1.3)
        yield at


def look_after(letters: list[dict[str, Any]]) -> Care:
    """What is to become of these dead letters, given as the HTTP interface lists them, newest first.

    The newest stay, for whoever wants to see what failing looks like. Of the others those go on whose cause lay with
    others, who have mended it by now; the rest would fail for ever.
    """
    care = Care()
    for letter in letters[_LEFT_LETTERS:]:
        if uid := letter.get("uid"):
            (care.retried if letter.get("error", "").startswith(_MENDED_BY_OTHERS) else care.dropped).append(uid)
    return care


def growth_pause(people: int) -> float:
    """Real seconds until the next person joins: word of mouth at first, then the town is full."""
    return _GROWTH_SECONDS * (1 + 3 * (people / MOST_PEOPLE) ** 2)


def illnesses(seed: int) -> Iterator[Illness]:
    """One after the other, without end; never two at once."""
    draw = random.Random(f"{seed}:illness")
    begins = _FIRST_ILLNESS_SECONDS
    while True:
        channel: Literal["push", "sms", "email"] = draw.choices(("sms", "email", "push"), (5, 3, 2))[0]
        faults, says = draw.choice((
            ({"server_error": 0.85, "latency_ms": 250.0}, "answers most requests with an error"),
            ({"throttle": 0.8, "latency_ms": 400.0}, "lets hardly anything through"),
            ({"server_error": 0.5, "undelivered": 0.4, "latency_ms": 800.0}, "is slow and loses messages"),
        ))
        yield Illness(channel, begins, begins + _ILLNESS_SECONDS, faults, says)
        begins += _ILLNESS_EVERY_SECONDS * draw.uniform(0.8, 1.3)


def errands(seed: int) -> Iterator[Errand]:
    """What the businesses and the town itself want done, in order of time, without end.

    The quiet ones want a little now and then; the noisy one comes with hundreds at once; some work tells how far it is,
    and some of it fails, each kind for a reason of its own.
    """
    draw = random.Random(f"{seed}:errands")
    at, burst_at, long_at, failing_at = 0.5, 4.0, 1.0, 2.0
    while True:
        at += min(draw.expovariate(1 / 1.2), _LONGEST_PAUSE_SECONDS)
        if at >= burst_at:
            pages = draw.randint(180, 300)
            for page in range(pages):
                yield Errand(burst_at, "demo.tenant.print_flyer", {"page": page, "of": pages}, NOISY, cost=2)
            burst_at += draw.uniform(28, 50)
        if at >= long_at:
            job = draw.choice(("demo.rebuild_search", "demo.import_photos", "demo.monthly_report"))
            yield Errand(long_at, job, {"items": draw.randint(30, 90)}, progress=True)
            long_at += draw.uniform(14, 26)
        if at >= failing_at:
            job = draw.choice(("demo.charge_card", "demo.sync_stock", "demo.fetch_exchange_rates", "demo.read_invoice"))
            # The first ones fail for certain: whoever opens the page of jobs wants to see what failing looks like.
            order = 60 * draw.randint(200, 1600) if failing_at < _SURE_SECONDS else draw.randint(10_000, 99_999)
            yield Errand(failing_at, job, {"order": order})
            failing_at += draw.uniform(3, 6) if failing_at < _SURE_SECONDS else draw.uniform(10, 25)
        tenant = draw.choice(QUIET)
        job = draw.choice(("demo.tenant.resize_photo", "demo.tenant.send_receipt", "demo.tenant.update_stock"))
        yield Errand(at, job, {"item": draw.randint(1, 5000)}, tenant)
