"""The latest touches over HTTP; who may ask is told in the tests of the other routes."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.edge import make_cursor
from keystead.messaging.touches.history import History
from keystead.messaging.touches.routes_latest import latest_routes
from tests.members.door import Visit, visiting

from .room import NOON, Room, on_sqlite


@pytest_asyncio.fixture
async def visit(room: Room) -> AsyncIterator[Visit]:
    async with visiting(latest_routes(History(room.valkey, room.database), lambda request: None)) as found:
        yield found


async def test_the_latest_touches_are_listed_page_by_page(visit: Visit, room: Room):
    assert await visit.ask("GET", "/touches") == (200, {"items": [], "next_cursor": None})
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await room.person("ben")
    reached = await room.send("ada")
    await room.dispatcher.run()
    await room.log_job.run()
    room.clock.advance(1)
    missed = await room.send("ben")
    await room.dispatcher.run()
    status, first = await visit.ask("GET", "/touches?limit=1")
    assert status == 200 and first["items"] == [{
        "uid": missed, "user_sub": "ben", "event": "hello_there", "channel": "sms", "status": "unreachable",
        "reason": "", "at": NOON + 1, "changed_at": NOON + 1}]
    status, second = await visit.ask("GET", f"/touches?limit=1&cursor={first['next_cursor']}")
    assert [item["uid"] for item in second["items"]] == [reached] and second["next_cursor"] is None
    for asked, uids in (("channel=sms", [missed, reached]), ("channel=push", []), ("outcome=failed", [missed]),
                        ("outcome=failed&channel=email", [])):
        assert [item["uid"] for item in (await visit.ask("GET", f"/touches?{asked}"))[1]["items"]] == uids, asked


@on_sqlite
@pytest.mark.parametrize("asked, status", [
    ("cursor=nonsense", 400), (f"cursor={make_cursor(2**63)}", 400), (f"cursor={make_cursor(-1)}", 400),
    (f"cursor={make_cursor('x')}", 400), ("channel=pigeon", 422), ("outcome=fine", 422), ("limit=0", 422),
    ("limit=501", 422),
])
async def test_a_list_that_cannot_be_asked_for_is_refused(visit: Visit, asked: str, status: int):
    assert (await visit.ask("GET", f"/touches?{asked}"))[0] == status
