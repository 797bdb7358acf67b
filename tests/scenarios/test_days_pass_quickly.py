"""The clock of a demonstration: at six hundred times the real speed reminders go out and a day is rotated, in a moment.

No bound here is on real time: what is claimed is that it happens, and in which order by the installation's own clock.
"""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from keystead.demo.client import Client

from ..demo.conftest import installed, until

pytestmark = pytest.mark.slow

SPEED = 600
PATIENCE_SECONDS = 400  # two days of such a clock: a machine that was too slow for one reminder sees the next
LOS_ANGELES = ZoneInfo("America/Los_Angeles")
# Evening where the statistics have their days, and before dawn in London. It must lie ahead.
SHOWN_AT = datetime(2031, 1, 14, 21, 0, tzinfo=LOS_ANGELES).timestamp()


async def _person(client: Client) -> str:
    made = await client.call("POST", "/users", {
        "provider": "tests", "provider_sub": "ada", "given_name": "Ada", "timezone": "Europe/London",
    })
    sub: str = made.body["sub"]
    given = {"email": "ada@example.com", "verified": True}
    await client.call("POST", "/users/me/contacts/emails", given, acts_for=sub)
    await client.call("POST", "/users/me/attributes/notification_time", {
        "days_of_week": ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
        "time_range": {"type": "preset", "preset": "morning"}, "channel": "all", "timezone": "Europe/London",
    }, acts_for=sub)
    await client.call("POST", "/users/me/visits", acts_for=sub)
    return sub


async def test_a_reminder_goes_out_and_the_day_is_rotated(tmp_path: Path) -> None:
    async with installed(tmp_path, speed=SPEED, shown_at=SHOWN_AT) as found:
        began = found.running.clock.now()
        assert began >= SHOWN_AT
        sub = await _person(found.client)
        joined_at = (await found.client.call("GET", f"/users/{sub}")).body["created_at"]
        day = datetime.fromtimestamp(joined_at, LOS_ANGELES).date().isoformat()
        reminders: list[float] = []

        async def reminded() -> bool:
            page = await found.client.call("GET", "/sandbox/outbox", channel="email", limit=500)
            reminders[:] = [message["at"] for message in page.body["items"] if "reminder" in message["title"].lower()]
            return bool(reminders)

        await until(reminded, "a reminder came in the morning of London", PATIENCE_SECONDS)
        local = datetime.fromtimestamp(reminders[0], ZoneInfo("Europe/London"))
        assert 6 <= local.hour < 22
        assert reminders[0] >= began

        async def rotated() -> bool:
            async with found.running.database.reading() as sql:
                rows = (await sql.execute(text("SELECT * FROM new_user_stats"))).mappings().all()
            return any((row["retrieved_for"], row["total"]) == (day, 1) for row in rows)

        await until(rotated, "the day on which she joined was rotated into its table", PATIENCE_SECONDS)
        assert datetime.fromtimestamp(found.running.clock.now(), LOS_ANGELES).date().isoformat() > day


async def test_a_login_link_lasts_as_long_as_ever(tmp_path: Path) -> None:
    async with installed(tmp_path, speed=SPEED, shown_at=SHOWN_AT) as found:
        running = found.running
        link = running.tickets.issue("login", "operator", lasts_seconds=900, once=True)
        began = running.clock.now()

        async def later() -> bool:
            return running.clock.now() - began > 2000

        await until(later, "more than the link's 900 seconds passed by the installation's clock")
        assert running.tickets.read("login", link).subject == "operator"


async def test_a_restart_does_not_go_back_in_time(tmp_path: Path) -> None:
    async with installed(tmp_path, speed=SPEED, shown_at=SHOWN_AT) as found:
        sub = await _person(found.client)
        ended = found.running.clock.now()
    async with installed(tmp_path) as again:
        assert again.running.clock.now() >= ended
        known = await again.client.call("GET", f"/users/{sub}")
        assert known.body["created_at"] <= again.running.clock.now()
