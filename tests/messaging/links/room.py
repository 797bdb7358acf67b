"""The links room, put together as the app does it, with a clock that is moved by hand."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert, select, text

from keystead.engine import Valkey
from keystead.messaging.links import Links, Style
from keystead.messaging.links.models import BufferedLink
from keystead.messaging.links.stats import LINKS_COUNTED
from keystead.messaging.links.tables import USER_TOUCH_LINK_CLICKS, USER_TOUCH_LINKS
from keystead.messaging.touches.tables import TOUCH_POINTS, USER_TOUCHES
from keystead.store import Database
from keystead.testing.clock import MovableClock

LOS_ANGELES = ZoneInfo("America/Los_Angeles")
NOON = datetime(2026, 3, 2, 12, tzinfo=LOS_ANGELES).timestamp()
TODAY = 20514  # that day

# For a test that runs on one server and on the cluster: what the databases differ in is tested elsewhere.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Room:
    def __init__(self, valkey: Valkey, database: Database, now: float = NOON) -> None:
        self.valkey, self.database, self.clock = valkey, database, MovableClock(now=now)
        self.links = Links(valkey, database, self.clock)

    async def people(self) -> None:
        """Somebody, a device of theirs, and a touch point."""
        async with self.database.transaction() as sql:
            await sql.execute(text("INSERT INTO users (sub, created_at) VALUES ('user_ann', 1.0)"))
            await sql.execute(text("INSERT INTO visitors (uid, source, created_at) VALUES ('v_device', '', 1.0)"))
            await sql.execute(insert(TOUCH_POINTS).values(
                uid="tpo_1", event_slug="hello", event_schema={}, selection_strategy="fixed", messages="",
                created_at=1.0,
            ))

    async def touch(self, send_uid: str, destination: str = "ann@example.com", channel: str = "email") -> None:
        """The row of a message that was delivered."""
        async with self.database.transaction() as sql:
            if await sql.scalar(text("SELECT count(*) FROM users")) == 0:
                raise AssertionError("say people() first")
            await sql.execute(insert(USER_TOUCHES).values(
                uid=f"tch_r_{send_uid}_{destination}", send_uid=send_uid, user_id=1, channel=channel, touch_point_id=1,
                destination=destination, message={}, created_at=1.0,
            ))

    async def link(self, touch_uid: str = "tch_1", page: str = "home", style: Style = Style.NORMAL) -> BufferedLink:
        return await self.links.create(page, touch_uid=touch_uid, style=style)

    async def counted(self, *events: str, day: int = TODAY) -> dict[str, Any]:
        """Counts of a day that are not zero: a number, or the numbers by breakdown. With events only those."""
        found = await LINKS_COUNTED.read(self.valkey, day)
        every = {event: found.breakdowns.get(event, amount) for event, amount in found.counts.items() if amount}
        for event, broken_down in found.breakdowns.items():
            assert sum(broken_down.values()) == found.counts[event], event
        return {event: every.get(event, 0) for event in events} if events else every

    async def stored_links(self) -> list[str]:
        async with self.database.reading() as sql:
            return list(await sql.scalars(select(USER_TOUCH_LINKS.c.code).order_by(USER_TOUCH_LINKS.c.code)))

    async def stored_clicks(self) -> dict[str, dict[str, Any]]:
        """Rows by uid, the parent by its uid."""
        c = USER_TOUCH_LINK_CLICKS.c
        async with self.database.reading() as sql:
            rows = [dict(row._mapping) for row in await sql.execute(select(USER_TOUCH_LINK_CLICKS).order_by(c.id))]
        uids = {row["id"]: row["uid"] for row in rows}
        return {row["uid"]: row | {"parent": uids.get(row["parent_id"])} for row in rows}
