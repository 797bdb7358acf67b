"""Links are made, stored later or given up, each in one step with its counts."""

from keystead.messaging.links import AbandonOutcome, PersistOutcome, Style, TrackType
from keystead.messaging.links.keys import BUFFER, CLICK_INDEX, LINK, LINK_CLICKS, TO_PERSIST

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite


async def test_a_link_works_from_the_moment_it_is_made(wide_room: Room) -> None:
    room = wide_room
    link = await room.links.create("share_journey", {"journey_uid": "j1"}, "share_journey", {"journey_uid": "j1"},
                                   touch_uid="tch_1")
    target = await room.links.resolve(link.code)
    assert target is not None
    assert (target.page_identifier, target.page_extra, target.stored) == ("share_journey", {"journey_uid": "j1"}, False)
    assert await BUFFER.at().score(room.valkey, link.code) == link.created_at == NOON
    assert await LINK.at(link.code).get(room.valkey) == link
    assert await room.counted() == {"created": 1}


async def test_a_link_waits_half_an_hour_before_it_is_stored(wide_room: Room) -> None:
    room = wide_room
    link = await room.link()
    assert await room.links.persist(link.code) is PersistOutcome.QUEUED
    assert await room.links.persist(link.code) is PersistOutcome.ALREADY_QUEUED
    assert await room.links.persist("nothing") is PersistOutcome.NOT_IN_BUFFER
    assert await TO_PERSIST.due_at(room.valkey, link.code) == NOON + 1800
    assert await room.counted("persist_queue_attempts", "persists_queued", "persist_queue_failed") == {
        "persist_queue_attempts": 3, "persists_queued": {"home": 1},
        "persist_queue_failed": {"home:duplicated": 1, "unknown:dropped": 1},
    }


async def test_giving_a_link_up_leaves_nothing_of_it(wide_room: Room) -> None:
    room = wide_room
    link = await room.link()
    click = await room.links.click(link.code, user_sub="user_ann")
    await room.links.click(link.code, track_type=TrackType.POST_LOGIN, user_sub="user_ann", parent_uid=click.click_uid)
    await room.links.persist(link.code)
    gone = await room.links.abandon(link.code)
    assert (gone.outcome, gone.link, gone.clicks) == (AbandonOutcome.ABANDONED, link, 2)
    for key in (BUFFER.at(), LINK.at(link.code), LINK_CLICKS.at(link.code), CLICK_INDEX.at(click.click_uid),
                TO_PERSIST.due):
        assert not await key.exists(room.valkey), key
    assert (await room.links.abandon(link.code)).outcome is AbandonOutcome.UNKNOWN
    assert await room.links.resolve(link.code) is None
    assert await room.counted("abandons_attempted", "abandoned", "abandon_failed") == {
        "abandons_attempted": 2, "abandoned": {"home:2": 1}, "abandon_failed": {"dne": 1},
    }


async def test_short_codes_begin_with_four_characters(wide_room: Room) -> None:
    assert len((await wide_room.link(style=Style.SHORT)).code) == 4
    assert len((await wide_room.link(style=Style.LONG)).code) == 86
