"""Links whose message was delivered become rows, with their clicks; nothing leaves the buffer that is not one."""

import pytest

from keystead.messaging.links import ClickOutcome, PersistOutcome, TrackType
from keystead.messaging.links.keys import BUFFER, CLICK_INDEX, LINK, TO_PERSIST
from keystead.messaging.links.persister import Persister
from keystead.messaging.links.stats import PERSIST_RUN
from keystead.patterns import IfWaiting

from ...patterns.crash import Died
from .room import Room, on_sqlite

POST_LOGIN = TrackType.POST_LOGIN


def persister(room: Room) -> Persister:
    return Persister(room.valkey, room.clock, room.database)


async def due(room: Room, touch_uid: str = "tch_1", page: str = "home", clicks: int = 0) -> tuple[str, list[str]]:
    """A link that may be stored in half an hour, with clicks."""
    link = await room.link(touch_uid, page)
    uids = [(await room.links.click(link.code, user_sub="user_ann", visitor_uid="v_device", limited=False)).click_uid
            for _ in range(clicks)]
    assert await room.links.persist(link.code) is PersistOutcome.QUEUED
    return link.code, uids


async def test_a_link_is_stored_with_its_clicks_and_leaves_nothing_behind(room: Room) -> None:
    await room.touch("tch_1", "ann@example.com")
    await room.touch("tch_1", "ann@elsewhere.example")
    code, (first, second) = await due(room, clicks=2)
    login = await room.links.click(code, track_type=POST_LOGIN, user_sub="user_ann", parent_uid=second)
    assert login.outcome is ClickOutcome.BUFFERED
    run = await persister(room).run()
    assert run is not None and run.done == 0, "not before half an hour has passed"
    room.clock.advance(1800)
    run = await persister(room).run()
    assert run is not None and run.counts == {
        "attempted": 1, "lost": 0, "integrity_error": 0, "persisted": 1, "persisted_without_clicks": 0,
        "persisted_with_one_click": 0, "persisted_with_multiple_clicks": 1,
    }
    rows = await room.stored_clicks()
    assert {uid: (row["parent"], row["child_known"], row["parent_known"]) for uid, row in rows.items()} == {
        first: (None, False, False), second: (None, True, False), login.click_uid: (second, False, True),
    }
    assert {(row["user_id"], row["visitor_id"]) for uid, row in rows.items() if uid != login.click_uid} == {(1, 1)}
    assert not rows[login.click_uid]["visitor_known"] and rows[login.click_uid]["visitor_id"] is None
    left = {key.decode() for key in await room.valkey.keys("touch_links:*") if b"ratelimit" not in key}
    assert left == set()
    target = await room.links.resolve(code)
    assert target is not None and target.stored
    assert await room.counted("persisted", "persisted_clicks", "persists_failed") == {
        "persisted": {"home": 1}, "persisted_clicks": {"home:3": 3}, "persists_failed": 0,
    }
    record = await PERSIST_RUN.at().get(room.valkey)
    assert record is not None and (record.persisted, record.stop_reason) == (1, "list_exhausted")


async def test_a_link_whose_message_has_no_row_is_kept_and_tried_again(room: Room) -> None:
    """Storing failed before, and the copy that people hold was deleted all the same."""
    code, clicks = await due(room, "tch_later", clicks=1)
    room.clock.advance(1800)
    run = await persister(room).run()
    assert run is not None and (run.counts["integrity_error"], run.counts["persisted_with_one_click"]) == (1, -1)
    assert await room.links.resolve(code) is not None
    assert await TO_PERSIST.due_at(room.valkey, code) == room.clock.now() + 600
    assert await room.counted("persists_failed") == {"persists_failed": {"integrity": 1}}
    await room.touch("tch_later")
    room.clock.advance(600)
    await persister(room).run()
    assert await room.stored_links() == [code]
    assert set(await room.stored_clicks()) == set(clicks)


async def test_a_link_near_its_end_is_left_to_the_sweep(room: Room) -> None:
    code, _ = await due(room, "tch_never")
    room.clock.advance(37 * 3600)
    await persister(room).run()
    assert await TO_PERSIST.due_at(room.valkey, code) is None
    assert await BUFFER.at().score(room.valkey, code) is not None


@on_sqlite
async def test_a_link_that_was_stored_by_a_run_that_died_is_stored_once_and_counted_once(wide_room: Room) -> None:
    """It died after the commit: the rows are there, the buffer still has the link."""
    room = wide_room
    await room.touch("tch_1")
    code, clicks = await due(room, clicks=1)
    link, index = await LINK.at(code).get(room.valkey), await CLICK_INDEX.at(clicks[0]).get(room.valkey)
    assert link is not None and index is not None
    room.clock.advance(1800)

    class Dies(Persister):
        async def _finish(self, *_: object) -> None:
            raise Died

    with pytest.raises(Died):
        await Dies(room.valkey, room.clock, room.database).run()
    assert await room.stored_links() == [code]
    assert await LINK.at(code).get(room.valkey) == link
    click = await room.links.click(code, user_sub="user_ann")
    assert click.outcome is ClickOutcome.DELAYED, "its clicks do not change while it is being stored"
    run = await persister(room).run()
    assert run is not None and (run.recovered, run.counts["persisted"]) == (1, 1)
    assert await room.stored_links() == [code]
    assert await LINK.at(code).get(room.valkey) is None
    assert (await room.counted("persisted"))["persisted"] == {"home": 1}


@on_sqlite
async def test_one_bad_link_does_not_stop_the_others(wide_room: Room) -> None:
    room = wide_room
    await room.touch("tch_1")
    codes = [(await due(room, clicks=place % 3))[0] for place in range(30)]
    await LINK.at(codes[3]).delete(room.valkey)
    await TO_PERSIST.schedule(room.valkey, "gone", room.clock.now(), if_waiting=IfWaiting.REPLACE)
    room.clock.advance(1800)
    run = await persister(room).run()
    assert run is not None and (run.counts["persisted"], run.counts["lost"], run.counts["attempted"]) == (29, 2, 31)
    assert set(await room.stored_links()) == set(codes) - {codes[3]}
    assert (await room.counted("persists_failed"))["persists_failed"] == {"lost": 2}
