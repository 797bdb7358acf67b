"""The walk of a daily reminder, in a whole installation: from the wish to the click, each step counted."""

import asyncio
import re
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest

from keystead.app import Running
from keystead.edge import user_token
from keystead.messaging.links.stats import LINKS_COUNTED
from keystead.messaging.sandbox import Outbox
from keystead.messaging.sms.stats import SENDS as TEXTS
from keystead.messaging.touches.stats import SENDS as TOUCHES
from keystead.reminders.stats import SENT
from tests.web.test_serving import installation, serving

PATIENCE_SECONDS = 90.0
PHONE = "+14155550123"


async def until(what):
    """Wait for something that is not None, False or empty."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := await what():
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"{what} did not come true within {PATIENCE_SECONDS:.0f} s")


@pytest.mark.parametrize("payload_keys", ["", "k" * 40])
async def test_a_wish_becomes_a_text_whose_link_is_clicked(tmp_path, payload_keys):
    app = installation(tmp_path, **{
        "messaging.payload_keys": payload_keys,
        "reminders.youngest_seconds": 0, "messaging.quiet_from_hour": 0, "messaging.quiet_until_hour": 0,
    })

    async def walk(ready):
        async with app.running(public_url=ready.url) as running, httpx.AsyncClient(
            timeout=60, base_url=ready.url
        ) as client:
            await _walk(running, client)

    await serving(app, walk, seconds=240)


async def _walk(running: Running, client: httpx.AsyncClient) -> None:
    person = await running.users.ensure("scenario", "ada", given_name="Ada")
    await running.switchboard.contacts.add_phone(person.sub, PHONE, verified=True)
    token = {"authorization": f"Bearer {user_token(running.tickets, person.sub, lasts_seconds=600)}"}
    # A window that is open now, wherever the day begins.
    zone = "Europe/Berlin"
    now = datetime.now(ZoneInfo(zone))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(0, int((now - timedelta(minutes=2) - midnight).total_seconds()))
    wished = await client.post("/api/1/users/me/attributes/notification_time", headers=token, json={
        "days_of_week": ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
        "time_range": {"type": "explicit", "start": start, "end": start + 1}, "channel": "sms", "timezone": zone,
        "timezone_technique": "app",
    })
    assert wished.status_code == 202, wished.text
    outbox = Outbox(running.valkey)
    text = (await until(lambda: outbox.messages("sms", PHONE)))[0]
    assert "Ada" in text.text
    code = re.search(r"/a/([A-Za-z0-9_-]+)", text.text)
    assert code is not None, text.text
    landed = await client.get(f"/a/{code[1]}", headers={"user-agent": "Mozilla/5.0", "accept": "text/html"})
    assert landed.status_code == 200 and "og:title" in landed.text
    unknown = await client.get("/a/nothing-here", headers={"accept": "text/html"})
    assert unknown.status_code == 404
    await _all_is_counted(running)
    history = await until(lambda: running.switchboard.history.of(person.sub))
    assert history[0].event == "daily_reminder"
    strays = [raw async for raw in running.valkey.scan_iter(count=1000) if running.registry.resolve(raw) is None]
    assert not strays, "keys that nothing declares"


async def _all_is_counted(running: Running) -> None:
    async def counted(family) -> dict[str, int]:
        earliest = await family.earliest(running.valkey)
        return {} if earliest is None else (await family.read(running.valkey, earliest)).counts

    async def is_delivered() -> bool:
        touches, texts, links = [await counted(family) for family in (TOUCHES, TEXTS, LINKS_COUNTED)]
        return bool(touches.get("reachable") == 1 and texts.get("succeeded_pending") == 1
                    and links.get("persists_queued") == 1 and links.get("clicks_buffered") == 1)

    await until(is_delivered)
    # By the day of the reader; the one before, whose window is over, may be looked at too.
    earliest = await SENT.earliest(running.valkey)
    days = [(await SENT.read(running.valkey, earliest + more)).counts for more in range(3)]
    (reminders,) = [day for day in days if day["sent"]]
    assert reminders["sent"] == reminders["sends_attempted"] == 1
    assert reminders["attempted"] == reminders["time_assigned"] == 1
