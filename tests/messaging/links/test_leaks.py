"""Links that nobody stored or gave up are found after 37 hours, and resolve until they are dealt with."""

import pytest

from keystead.messaging.links import ClickOutcome
from keystead.messaging.links.keys import BUFFER, LEAKED, LINK, TO_PERSIST
from keystead.messaging.links.leaks import Leaks
from keystead.messaging.links.stats import LEAK_RUN

from ...patterns.crash import Died
from .room import TODAY, Room, on_sqlite

LONG = 37 * 3600


def leaks(room: Room) -> Leaks:
    return Leaks(room.valkey, room.clock, room.database)


async def test_a_leaked_link_is_stored_if_its_message_has_a_row_and_forgotten_otherwise(room: Room) -> None:
    await room.touch("tch_1")
    kept, dropped = await room.link("tch_1"), await room.link("tch_never")
    click = await room.links.click(kept.code, visitor_uid="v_device")
    room.clock.advance(LONG - 1)
    young = await room.link("tch_1")
    run = await leaks(room).run()
    assert run is not None and run.counts["leaked"] == 0
    room.clock.advance(1)
    run = await leaks(room).run()
    assert run is not None and run.counts == {"leaked": 2, "recovered": 1, "abandoned": 1}
    assert await room.stored_links() == [kept.code]
    assert set(await room.stored_clicks()) == {click.click_uid}
    assert await BUFFER.at().range(room.valkey) == [(young.code, young.created_at)]
    assert await room.links.resolve(dropped.code) is None
    assert not await LEAKED.at().exists(room.valkey)
    assert (await room.counted("leaked", day=TODAY))["leaked"] == {"recovered": 1, "abandoned": 1}
    record = await LEAK_RUN.at().get(room.valkey)
    assert record is not None and (record.leaked, record.stop_reason) == (2, "list_exhausted")


@on_sqlite
async def test_a_link_that_is_being_stored_is_left_alone(wide_room: Room) -> None:
    room = wide_room
    link = await room.link("tch_never")
    await room.links.persist(link.code)
    room.clock.advance(LONG)
    await TO_PERSIST.worker("one").take(room.valkey, 10, now=room.clock.now())
    run = await leaks(room).run()
    assert run is not None and run.counts["leaked"] == 0
    assert await LINK.at(link.code).exists(room.valkey)


@on_sqlite
async def test_a_sweep_that_dies_leaves_the_link_to_the_next_and_it_resolves_all_the_while(wide_room: Room) -> None:
    room = wide_room
    await room.touch("tch_1")
    link = await room.link("tch_1")
    room.clock.advance(LONG)

    class Dies(Leaks):
        async def _end(self, *_: object) -> bool:
            raise Died

    with pytest.raises(Died):
        await Dies(room.valkey, room.clock, room.database).run()
    assert await room.links.resolve(link.code) is not None
    assert (await room.links.click(link.code, limited=False)).outcome is ClickOutcome.DELAYED
    run = await leaks(room).run()
    assert run is not None and run.counts["leaked"] == 1
    target = await room.links.resolve(link.code)
    assert target is not None and target.stored
    assert not await LINK.at(link.code).exists(room.valkey)
    assert (await room.counted("leaked", day=TODAY))["leaked"] == {"duplicate": 1}


@on_sqlite
async def test_a_code_with_nothing_behind_it_is_removed(wide_room: Room) -> None:
    room = wide_room
    link = await room.link()
    await LINK.at(link.code).delete(room.valkey)
    room.clock.advance(LONG)
    await leaks(room).run()
    assert not await BUFFER.at().exists(room.valkey)
