"""Half a year of a small product's statistics, the same each time; and an installation that shows them.

``python -m tests.web.stats_at_hand DIRECTORY`` fills the running installation whose data directory it is.
"""

import asyncio
import math
import random
import sys
from collections.abc import Callable, Iterator

from keystead import dates
from keystead.app import App, Running
from keystead.content.stats import JOURNEY_SESSIONS, JOURNEY_VIEWS
from keystead.identity.stats import AUTHORIZE
from keystead.jobs import RunFacts
from keystead.keys import RecordKey
from keystead.members.stats import (
    CONVERSION,
    DAILY_ACTIVE,
    MONTHLY_ACTIVE,
    NEW_USERS,
    PUSH_TOKENS,
    RETENTION,
    USERS,
)
from keystead.messaging.email.stats import SENDS as EMAILS
from keystead.messaging.sms.stats import EVENTS, RECONCILIATION_RUN, SEND_RUN, STALE_RUN
from keystead.messaging.sms.stats import SENDS as TEXTS
from keystead.patterns import DailyFamily
from keystead.reminders.stats import SENT as REMINDERS
from keystead.settings import load_settings

# One event of a day: its name, its value if it has a breakdown, how often.
Counts = Iterator[tuple[str, str | None, int]]


def texts(n: int, chance: random.Random) -> Counts:
    yield "queued", None, n
    yield "succeeded_pending", "queued", round(n * 0.62)
    yield "succeeded_pending", "accepted", round(n * 0.27)
    yield "succeeded_immediate", "sent", round(n * 0.06)
    yield "retried", None, chance.randrange(n // 20 + 2)
    yield "failed_due_to_application_error_other", chance.choice(["21610", "21211", "30034"]), round(n * 0.03)
    yield "failed_due_to_network_error", None, chance.randrange(n // 40 + 2)


def news_of_texts(n: int, chance: random.Random) -> Counts:
    polled, unknown, twice = n // 9, chance.randrange(3), chance.randrange(n // 12 + 2)
    yield "attempted", "delivered", n - polled
    yield "attempted", "undelivered", polled
    yield "received_via_webhook", "delivered", n - polled
    yield "received_via_polling", "undelivered", polled
    yield "unknown", "delivered", unknown
    yield "found", None, n - unknown
    yield "duplicate", "delivered", twice
    yield "updated", "queued:sent", (n - unknown - twice) // 2
    yield "removed", "sent:delivered", n - unknown - twice - (n - unknown - twice) // 2


def emails(n: int, chance: random.Random) -> Counts:
    failed = chance.randrange(n // 25 + 2)
    yield "queued", None, n
    yield "attempted", None, n
    yield "templated", None, n - failed
    yield "accepted", "daily_reminder", (n - failed) * 2 // 3
    yield "accepted", "verify_email", n - failed - (n - failed) * 2 // 3
    yield "failed_transiently", "send:ThrottlingException", failed


def log_ins(n: int, chance: random.Random) -> Counts:
    wrong, limited = n // 7, chance.randrange(4)
    yield "login_attempted", None, n
    yield "login_failed", "bad_password", wrong
    yield "login_failed", "ratelimited", limited
    yield "login_succeeded", "no_code:verified", n - wrong - limited
    yield "create_attempted", None, n // 5
    yield "create_succeeded", "no_code", n // 5
    yield "check_attempts", None, n * 2
    yield "check_succeeded", "normal", n * 2 - n // 10
    yield "check_elevated", "visitor", n // 10


def reminders(n: int, chance: random.Random) -> Counts:
    skipped = chance.randrange(n // 10 + 2)
    yield "attempted", None, n
    yield "time_assigned", "sms", n // 3
    yield "time_assigned", "push", n - n // 3
    yield "sends_attempted", None, n
    yield "links", None, n - skipped
    yield "sent", "sms", n // 3
    yield "sent", "push", n - n // 3 - skipped
    yield "skipped_sending", "push:unreachable", skipped


def devices(n: int, chance: random.Random) -> Counts:
    yield "created", None, n // 8
    yield "refreshed", None, n
    yield "deleted_due_to_unrecognized_receipt", None, chance.randrange(3)


FLOWS: list[tuple[DailyFamily, int, Callable[[int, random.Random], Counts]]] = [
    (TEXTS, 420, texts), (EVENTS, 410, news_of_texts), (EMAILS, 260, emails), (AUTHORIZE, 180, log_ins),
    (REMINDERS, 640, reminders), (PUSH_TOKENS, 90, devices),
]


async def fill(running: Running, *, days: int = 182, people: int = 500) -> None:
    """Count all of it on the days it belongs to, rotate what is over, and leave today live."""
    chance = random.Random(7)
    today = NEW_USERS.day_of(running.clock.now())
    await fill_families(running, chance, today, days)
    await fill_people(running, chance, today, days, people)
    await fill_views(running, chance, today, min(days, 40))
    await fill_runs(running, chance)
    await running.rotation.run()


async def fill_families(running: Running, chance: random.Random, today: int, days: int) -> None:
    for family, usual, flow in FLOWS:
        for day in range(today - days + 1, today + 1):
            season = (1 + (day - today + days) / days) * (0.8 + 0.2 * math.sin(day * 2 * math.pi / 7))
            share = season * chance.uniform(0.9, 1.1) * (0.4 if day == today else 1)
            tally = family.tally()
            for event, value, amount in flow(max(4, round(usual * share)), chance):
                if amount:
                    tally.incr(event, value, amount, unix_date=day)
            if family is EVENTS and day == today - 9:  # someone counted what was never attempted
                tally.incr("unknown", "delivered", 17, unix_date=day)
            await tally.store(running.valkey)


async def fill_people(running: Running, chance: random.Random, today: int, days: int, people: int) -> None:
    valkey, active = running.valkey, dict[int, set[str]]()
    for number in range(people):
        sub, joined = f"person-{number}", today - min(days - 1, int(chance.triangular(0, days, 0)))
        at = dates.day_starts_at(dates.UnixDate(joined), NEW_USERS.home)
        await USERS.increment(valkey, at=at)
        await NEW_USERS.increment(valkey, day=joined)
        await RETENTION.join(valkey, sub, day=joined)
        faith = chance.choice([0, 0, 0, 0.02, 0.05, 0.3, 0.6])
        for day in range(joined, today + 1):
            if chance.random() < (0.75 if day == joined else faith * math.exp(-(day - joined) / (10 + 150 * faith))):
                active.setdefault(day, set()).add(sub)
                await RETENTION.active(valkey, sub, joined_day=joined, day=day)
    for day, subs in active.items():
        month = dates.date_to_unix_month(dates.unix_date_to_date(dates.UnixDate(day)))
        await DAILY_ACTIVE.add(valkey, *subs, day=day)
        await MONTHLY_ACTIVE.add(valkey, *subs, day=month)


async def fill_views(running: Running, chance: random.Random, today: int, days: int) -> None:
    valkey = running.valkey
    for day in range(today - days + 1, today + 1):
        for value, usual in (("Meditation", 24), ("Sleep", 17), ("Breathwork", 9), ("Mindful Movement", 5)):
            for _ in range(chance.randrange(usual // 2, usual)):
                await JOURNEY_VIEWS.viewed(valkey, value, f"person-{chance.randrange(80)}", day=day)
                await JOURNEY_SESSIONS.increment(
                    valkey, at=dates.day_starts_at(dates.UnixDate(day), NEW_USERS.home)
                )
        changes = []
        for row, visits in (("utm_source=newsletter&utm_medium=email&utm_campaign=spring", 60),
                            ("utm_source=instagram&utm_medium=social", 34), ("utm_source=podcast", 11)):
            seen = chance.randrange(visits // 2, visits)
            changes += [(row, "visits", seen), (row, "preexisting", seen // 4),
                        (row, "any_click_signups", seen // 9), (row, "last_click_signups", seen // 11)]
        await CONVERSION.add(valkey, changes, day=day)


async def fill_runs(running: Running, chance: random.Random) -> None:
    now = running.clock.now()
    await _ran(running, SEND_RUN, now - 42, 3.2, "list_exhausted", attempted=184, pending=171, succeeded=9,
               failed_permanently=3, failed_transiently=1)
    await _ran(running, RECONCILIATION_RUN, now - 65, 0.4, "time_exhausted", attempted=60, succeeded=58, found=59,
               updated=31, removed=27, duplicate=1, pending=2)
    await STALE_RUN.at().set(running.valkey, STALE_RUN.record.of(started_at=now - 5))


async def _ran(running: Running, key: RecordKey[RunFacts], at: float, took: float, why: str, **counted: int) -> None:
    facts = key.record.of(started_at=at, finished_at=at + took, running_time=took, stop_reason=why, **counted)
    await key.at().set(running.valkey, facts)


async def main(directory: str) -> None:
    async with App(load_settings({"valkey.url": f"embedded://{directory}"}, environment={})).running() as running:
        await fill(running)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
