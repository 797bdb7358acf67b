"""People who look after links see what waits and what is late."""

from keystead.messaging.links.keys import TO_PERSIST
from keystead.messaging.links.persister import Persister
from keystead.messaging.links.queues import LinkQueues, SetInfo

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite


async def test_what_is_late_is_told(wide_room: Room) -> None:
    room, queues = wide_room, LinkQueues(wide_room.valkey, wide_room.clock)
    assert await queues.buffered() == SetInfo(0, None, 0)
    link = await room.link()
    await room.links.persist(link.code)
    room.clock.advance(37 * 3600)
    await room.link()
    assert await queues.buffered() == SetInfo(2, NOON, 1)
    assert await queues.persistable() == SetInfo(1, NOON + 1800, 1)
    await TO_PERSIST.worker("one").take(room.valkey, 10, now=room.clock.now())
    assert await queues.persistable() == SetInfo(0, None, 0)
    assert await queues.last_run("last_persist_link_job") == {"in_purgatory": 1}


async def test_the_last_run_is_told(wide_room: Room) -> None:
    room = wide_room
    await Persister(room.valkey, room.clock, room.database).run()
    told = await LinkQueues(room.valkey, room.clock).last_run("last_persist_link_job")
    assert (told["stop_reason"], told["attempted"], told["in_purgatory"]) == ("list_exhausted", 0, 0)
