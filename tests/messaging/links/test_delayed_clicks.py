"""Clicks that came while their link was being stored are stored after it, each once, parents first."""

import pytest

from keystead.messaging.links import ClickOutcome, TrackType
from keystead.messaging.links.delayed_clicks import DelayedClicks
from keystead.messaging.links.keys import CHILD_OF, DELAYED, DELAYED_CLICK, TO_PERSIST
from keystead.messaging.links.persister import Persister

from ...patterns.crash import Died
from .room import Room, on_sqlite

POST_LOGIN = TrackType.POST_LOGIN


def job(room: Room) -> DelayedClicks:
    return DelayedClicks(room.valkey, room.clock, room.database)


async def being_stored(room: Room, touch_uid: str = "tch_1") -> str:
    """A link that a run holds which then died."""
    link = await room.link(touch_uid)
    await room.links.persist(link.code)
    room.clock.advance(1800)
    taken = await TO_PERSIST.worker().take(room.valkey, 10, now=room.clock.now())
    assert taken.values == [link.code]
    return link.code


async def test_clicks_during_storing_are_stored_after_it_with_their_logins(room: Room) -> None:
    """Once they stayed for ever, and were counted as duplicates every minute; no login was ever stored."""
    await room.touch("tch_1")
    code = await being_stored(room)
    click = await room.links.click(code, visitor_uid="v_device", limited=False)
    login = await room.links.click(code, track_type=POST_LOGIN, user_sub="user_ann", parent_uid=click.click_uid)
    assert (click.outcome, login.outcome) == (ClickOutcome.DELAYED, ClickOutcome.DELAYED)
    again = await room.links.click(code, track_type=POST_LOGIN, user_sub="user_ann", parent_uid=click.click_uid)
    assert again.outcome is ClickOutcome.PARENT_HAS_CHILD
    await Persister(room.valkey, room.clock, room.database).run()
    room.clock.advance(1800)
    run = await job(room).run()
    assert run is not None and run.counts == {
        "attempted": 2, "persisted": 2, "delayed": 0, "lost": 0, "duplicate": 0
    }
    rows = await room.stored_clicks()
    assert {uid: (row["parent"], row["child_known"]) for uid, row in rows.items()} == {
        click.click_uid: (None, True), login.click_uid: (click.click_uid, False)
    }
    for key in (DELAYED.due, DELAYED_CLICK.at(click.click_uid), DELAYED_CLICK.at(login.click_uid),
                CHILD_OF.at(click.click_uid), DELAYED.purgatory_key.at()):
        assert not await key.exists(room.valkey), key
    run = await job(room).run()
    assert run is not None and run.counts["attempted"] == 0
    assert await room.counted("delayed_clicks_attempted", "delayed_clicks_persisted") == {
        "delayed_clicks_attempted": 2,
        "delayed_clicks_persisted": {"on_click:home:vis=True:user=False": 1, "post_login:home:vis=False:user=True": 1},
    }


async def test_a_click_waits_on_while_its_link_is_being_stored(room: Room) -> None:
    """It is the code of the link that is looked for, not the uid of the click."""
    code = await being_stored(room)
    click = await room.links.click(code)
    room.clock.advance(1800)
    run = await job(room).run()
    assert run is not None and (run.counts["delayed"], run.counts["persisted"]) == (1, 0)
    assert await DELAYED.due_at(room.valkey, click.click_uid) == room.clock.now() + 600
    assert await DELAYED_CLICK.at(click.click_uid).exists(room.valkey)
    assert await room.counted("delayed_clicks_attempted", "delayed_clicks_delayed") == {
        "delayed_clicks_attempted": 1, "delayed_clicks_delayed": 1
    }


async def test_a_click_that_is_a_row_already_is_a_duplicate(room: Room) -> None:
    await room.touch("tch_1")
    code = await being_stored(room)
    click = await room.links.click(code)
    await Persister(room.valkey, room.clock, room.database).run()
    room.clock.advance(1800)

    class Dies(DelayedClicks):
        async def _finish(self, *_: object) -> None:
            raise Died

    with pytest.raises(Died):
        await Dies(room.valkey, room.clock, room.database).run()
    assert set(await room.stored_clicks()) == {click.click_uid}
    run = await job(room).run()
    assert run is not None and (run.counts["duplicate"], run.counts["persisted"]) == (1, 0)
    assert set(await room.stored_clicks()) == {click.click_uid}
    assert not await DELAYED_CLICK.at(click.click_uid).exists(room.valkey)


@on_sqlite
async def test_a_click_whose_link_was_given_up_is_lost(wide_room: Room) -> None:
    room = wide_room
    code = await being_stored(room, "tch_never")
    click = await room.links.click(code)
    await Persister(room.valkey, room.clock, room.database).run()  # no row of the message: it waits again
    assert (await room.links.abandon(code)).link is not None
    room.clock.advance(1800)
    run = await job(room).run()
    assert run is not None and run.counts["lost"] == 1
    assert not await DELAYED_CLICK.at(click.click_uid).exists(room.valkey)
    assert (await room.counted("delayed_clicks_failed"))["delayed_clicks_failed"] == {"lost": 1}


@on_sqlite
async def test_a_login_waits_for_a_click_that_waits_itself(wide_room: Room) -> None:
    room = wide_room
    await room.touch("tch_1")
    code = await being_stored(room)
    click = await room.links.click(code)
    login = await room.links.click(code, track_type=POST_LOGIN, user_sub="user_ann", parent_uid=click.click_uid)
    await Persister(room.valkey, room.clock, room.database).run()
    room.clock.advance(1800)
    await DELAYED.schedule(room.valkey, click.click_uid, room.clock.now() + 60)
    run = await job(room).run()
    assert run is not None and (run.counts["attempted"], run.counts["delayed"]) == (1, 1)
    room.clock.advance(600)
    run = await job(room).run()
    assert run is not None and run.counts["persisted"] == 2
    assert (await room.stored_clicks())[login.click_uid]["parent"] == click.click_uid
