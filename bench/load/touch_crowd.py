"""What the measurements of touches share: people with addresses, the touches to them, and the settings they go by."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keystead.messaging.touches import Touches
    from keystead.messaging.touches.models import Touch
    from keystead.settings import Settings
    from keystead.store import Database

SLUG = "daily_reminder"
TWO_OF_TEN = 3  # of ten people so many have a second address
DESTINATIONS = 1 + TWO_OF_TEN / 10
CHANNELS = ("sms", "email", "push")

_PEOPLE = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO users (sub, created_at) SELECT 'user_' || i, 1.0 FROM n
"""
# The rows of one channel's people: every third person; the second time only those with two addresses.
_ADDRESSES = {
    "sms": """INSERT INTO user_phone_numbers (user_id, phone_number, verified, receives_notifications, created_at)
              SELECT id, '+1555' || (2000000 + id * 2 + {nth}), true, true, 1.0""",
    "email": """INSERT INTO user_email_addresses (user_id, email, folded, verified, receives_notifications, created_at)
                SELECT id, 'p' || id || 'n{nth}@example.com', 'p' || id || 'n{nth}@example.com', true, true, 1.0""",
    "push": """INSERT INTO user_push_tokens (uid, user_id, platform, token, receives_notifications, created_at,
                                             updated_at, last_seen_at)
               SELECT 'upt_' || id || 'n{nth}', id, 'ios', 'ExponentPushToken[' || id || 'n{nth}]', true, 1.0,
                      1.0, 1.0""",
}
_WHOSE = " FROM users WHERE (id - 1) % 3 = {channel} AND (id - 1) % 10 < {share}"


async def fill(database: "Database", people: int) -> int:
    """Add people, reached on one channel each, three in ten of them twice; says how many addresses there are."""
    from sqlalchemy import text

    added = 0
    async with database.transaction() as sql:
        await sql.execute(text(_PEOPLE.format(last=people - 1)))
        for channel, statement in enumerate(_ADDRESSES[name] for name in CHANNELS):
            for nth, share in ((0, 10), (1, TWO_OF_TEN)):
                done = await sql.execute(text(
                    statement.format(nth=nth) + _WHOSE.format(channel=channel, share=share)
                ))
                added += done.rowcount
    return added


def touches_to(touches: "Touches", people: int, batch: int) -> Iterator[list["Touch"]]:
    """A touch to each, in batches."""
    from keystead.ids import UserSub
    from keystead.jobs import JobRef

    done, failed = JobRef("bench.done", {}), JobRef("bench.failed", {})
    for first in range(0, people, batch):
        yield [
            touches.make(UserSub(f"user_{number}"), SLUG, channel=CHANNELS[number % 3], success=done, failure=failed,  # type: ignore[arg-type]
                         parameters={"name": "Ada", "url": f"https://example.com/l/{number:x}"})
            for number in range(first, min(first + batch, people))
        ]


def settings_of(url: str, directory: Path, provider_url: str, rate: float) -> "Settings":
    """An installation whose couriers may ask so much of each provider; nobody sleeps in it. Otherwise the defaults."""
    from keystead.settings import load_settings

    at_once = 16 + round(rate * 0.1)  # a request takes 50 ms and its settlement some more
    return load_settings({
        "valkey.url": url, "store.url": f"sqlite:///{directory}/bench.sqlite", "store.files_url": f"file://{directory}/files",
        "messaging.quiet_from_hour": 0, "messaging.quiet_until_hour": 0, "messaging.public_url": provider_url,
        "sms.url": f"{provider_url}/twilio", "sms.rate_per_second": rate, "sms.concurrent_requests": at_once,
        "email.url": f"{provider_url}/ses", "email.rate_per_second": rate, "email.concurrent_requests": at_once,
        "push.url": f"{provider_url}/expo", "push.rate_per_second": rate, "push.concurrent_requests": 8,
        "log.level": "error",
    }, environment={})


def flags() -> argparse.ArgumentParser:
    from bench.load import protocol

    found = protocol.parser()
    found.add_argument("--touches", type=int, default=100_000)
    return found
