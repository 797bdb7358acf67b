"""Storing links and clicks again changes nothing, whoever does it and however often."""

import asyncio

from keystead.messaging.links.models import BufferedLink, Click, ClickOutcome, TrackType
from keystead.messaging.links.rows import (
    LinkStored,
    add_clicks,
    add_login,
    addresses_written_to,
    codes_taken,
    find_link,
    store_links,
)

from .room import Room

LINK = BufferedLink("utl_1", "a", "tch_1", "home", 1.0, {"x": [1, "ü"]})
CLICKS = [
    Click("utlc_login", 1.5, TrackType.POST_LOGIN, None, "user_ann", "utlc_first"),
    Click("utlc_first", 2.0, TrackType.ON_CLICK, "v_device", "nobody"),
]


async def store(room: Room, *links: tuple[BufferedLink, list[Click]]) -> dict[str, tuple[LinkStored, int]]:
    async with room.database.transaction() as sql:
        found = await store_links(room.database, sql, list(links), 5.0)
    return {code: (each.link, each.clicks) for code, each in found.items()}


async def test_a_login_is_stored_after_its_click_whatever_their_order(room: Room) -> None:
    await room.touch("tch_1")
    assert await store(room, (LINK, CLICKS)) == {"a": (LinkStored.STORED, 2)}
    assert await store(room, (LINK, CLICKS)) == {"a": (LinkStored.THERE, 2)}
    rows = await room.stored_clicks()
    assert rows["utlc_login"]["parent"] == "utlc_first" and rows["utlc_first"]["child_known"]
    assert (rows["utlc_first"]["user_id"], rows["utlc_first"]["user_known"]) == (None, True)
    found = await find_link(room.database, "a")
    assert found is not None and found.target.page_extra == {"x": [1, "ü"]}
    assert await codes_taken(room.database, {"a", "b"}) == {"a"}


async def test_a_code_of_another_link_is_not_taken_over(room: Room) -> None:
    await room.touch("tch_1")
    await store(room, (LINK, []))
    other = BufferedLink("utl_2", "a", "tch_1", "unsubscribe", 1.0)
    free = BufferedLink("utl_3", "b", "tch_none", "home", 1.0)
    assert await store(room, (other, CLICKS), (free, [])) == {
        "a": (LinkStored.TAKEN, 0), "b": (LinkStored.NO_TOUCH, 0)
    }
    assert await room.stored_clicks() == {}
    found = await find_link(room.database, "a")
    assert found is not None and found.target.page_identifier == "home"


async def test_of_two_logins_at_once_one_is_the_child(room: Room) -> None:
    await room.touch("tch_1")
    await store(room, (LINK, []))
    link = await find_link(room.database, "a")
    assert link is not None
    await add_clicks(room.database, [(link.id, CLICKS[1])], 3.0)
    logins = [Click(f"utlc_{place}", 4.0, TrackType.POST_LOGIN, None, "user_ann", "utlc_first") for place in range(4)]
    outcomes = await asyncio.gather(*(add_login(room.database, link, login, 5.0) for login in logins))
    assert sorted(outcomes) == [ClickOutcome.DIRECT_TO_DB, *[ClickOutcome.PARENT_HAS_CHILD] * 3]
    assert len(await room.stored_clicks()) == 2
    lonely = Click("utlc_x", 4.0, TrackType.POST_LOGIN, None, "user_ann", "utlc_none")
    assert await add_login(room.database, link, lonely, 5.0) is ClickOutcome.PARENT_NOT_FOUND


async def test_addresses_of_the_message_are_found_by_its_uid_or_by_the_code(room: Room) -> None:
    await room.touch("tch_1", "ann@example.com")
    await room.touch("tch_1", "ann@elsewhere.example")
    await room.touch("tch_1", "+15550100", channel="sms")
    await room.touch("tch_2", "else@example.com")
    await store(room, (LINK, []))
    wanted = ["ann@elsewhere.example", "ann@example.com"]
    assert sorted(await addresses_written_to(room.database, "a", "")) == wanted
    assert sorted(await addresses_written_to(room.database, "none", "tch_1")) == wanted
    assert await addresses_written_to(room.database, "none", "") == []
