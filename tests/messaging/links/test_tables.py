"""What the tables themselves refuse, and what goes with what."""

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError

from keystead.messaging.links.tables import USER_TOUCH_LINK_CLICKS, USER_TOUCH_LINKS

from .room import Room

LINK = {"uid": "utl_1", "user_touch_id": 1, "code": "a", "page_identifier": "home", "page_extra": {},
        "preview_identifier": "default", "preview_extra": {}}
CLICK = {"uid": "utlc_1", "user_touch_link_id": 1, "track_type": "on_click", "parent_id": None, "user_id": 1,
         "visitor_id": 1, "parent_known": False, "user_known": True, "visitor_known": True, "child_known": False,
         "clicked_at": 1.0, "created_at": 1.0}


async def test_a_code_belongs_to_one_link_and_a_click_has_one_child(room: Room) -> None:
    await room.touch("tch_1")
    child = CLICK | {"uid": "utlc_2", "track_type": "post_login", "parent_id": 1}
    async with room.database.transaction() as sql:
        await sql.execute(insert(USER_TOUCH_LINKS).values(LINK))
        await sql.execute(insert(USER_TOUCH_LINK_CLICKS).values(CLICK))
        await sql.execute(insert(USER_TOUCH_LINK_CLICKS).values(child))
        for table, row in ((USER_TOUCH_LINKS, LINK | {"uid": "utl_2"}),
                           (USER_TOUCH_LINK_CLICKS, child | {"uid": "utlc_3"})):
            with pytest.raises(IntegrityError):
                async with sql.begin_nested():
                    await sql.execute(insert(table).values(row))


async def test_links_go_with_the_message_and_clicks_outlive_the_device(room: Room) -> None:
    await room.touch("tch_1")
    async with room.database.transaction() as sql:
        await sql.execute(insert(USER_TOUCH_LINKS).values(LINK))
        await sql.execute(insert(USER_TOUCH_LINK_CLICKS).values(CLICK))
        await sql.execute(text("DELETE FROM visitors"))
    (row,) = (await room.stored_clicks()).values()
    assert (row["visitor_id"], row["visitor_known"]) == (None, True)
    async with room.database.transaction() as sql:
        await sql.execute(text("DELETE FROM users"))
    assert await room.stored_links() == [] and await room.stored_clicks() == {}
