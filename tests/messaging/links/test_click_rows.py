"""Clicks that wait together are written with one commit, and each is told what became of it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from keystead.errors import Unavailable
from keystead.messaging.links import click_rows
from keystead.messaging.links.click_rows import ClickRows
from keystead.messaging.links.models import BufferedLink, Click, TrackType
from keystead.messaging.links.rows import StoredLink, find_link, store_links

from .room import Room


async def stored_link(room: Room) -> StoredLink:
    await room.touch("tch_1")
    async with room.database.transaction() as sql:
        await store_links(room.database, sql, [(BufferedLink("utl_1", "a", "tch_1", "home", 1.0), [])], 5.0)
    link = await find_link(room.database, "a")
    assert link is not None
    return link


def click(number: int) -> Click:
    return Click(f"utlc_{number}", float(number), TrackType.ON_CLICK)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many clicks each transaction wrote, or tried to."""
    seen: list[int] = []
    plain = click_rows.add_clicks

    async def told(database, clicks, now):
        seen.append(len(clicks))
        await plain(database, clicks, now)

    monkeypatch.setattr(click_rows, "add_clicks", told)
    return seen


async def test_those_that_wait_share_a_commit(room: Room, writes: list[int]) -> None:
    link, rows = await stored_link(room), ClickRows(room.database)
    await asyncio.gather(*(rows.add(link, click(number), 5.0) for number in range(60)))
    assert set(await room.stored_clicks()) == {f"utlc_{number}" for number in range(60)}
    assert sum(writes) == 60 and len(writes) <= 3


async def test_no_commit_takes_too_many(room: Room, writes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_rows, "MOST_TOGETHER", 10)
    link, rows = await stored_link(room), ClickRows(room.database)
    await asyncio.gather(*(rows.add(link, click(number), 5.0) for number in range(35)))
    assert len(await room.stored_clicks()) == 35
    assert max(writes) == 10


async def test_whoever_returns_is_a_row_whoever_else_was_cancelled(room: Room) -> None:
    """The one that writes for all may go at any moment; the others do not go with it."""
    link, rows = await stored_link(room), ClickRows(room.database)
    for steps in range(20):
        adding = [asyncio.create_task(rows.add(link, click(steps * 10 + number), 5.0)) for number in range(6)]
        for _ in range(steps):
            await asyncio.sleep(0)
        adding[0].cancel()
        adding[3].cancel()
        results = await asyncio.gather(*adding, return_exceptions=True)
        stored = await room.stored_clicks()
        for number, result in enumerate(results):
            assert result is None or number in (0, 3)
            assert result is not None or f"utlc_{steps * 10 + number}" in stored
    assert rows._waiting == {}


async def test_one_that_cannot_be_written_spoils_no_other(room: Room) -> None:
    link, rows = await stored_link(room), ClickRows(room.database)
    gone = StoredLink(link.id + 1000, link.target)
    results = await asyncio.gather(
        *(rows.add(gone if number == 2 else link, click(number), 5.0) for number in range(5)), return_exceptions=True
    )
    assert [number for number, result in enumerate(results) if result is not None] == [2]
    assert set(await room.stored_clicks()) == {f"utlc_{number}" for number in (0, 1, 3, 4)}


async def test_all_hear_at_once_that_the_database_is_away(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    link, rows = await stored_link(room), ClickRows(room.database)
    tried = 0

    @asynccontextmanager
    async def away():
        nonlocal tried
        tried += 1
        await asyncio.sleep(0.01)
        raise Unavailable("away")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(room.database, "transaction", away)
        results = await asyncio.gather(*(rows.add(link, click(number), 5.0) for number in range(50)),
                                       return_exceptions=True)
    assert all(isinstance(result, Unavailable) for result in results)
    assert tried <= 2
    await rows.add(link, click(1), 5.0)
    assert set(await room.stored_clicks()) == {"utlc_1"}
