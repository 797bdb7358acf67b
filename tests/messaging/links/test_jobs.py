"""The jobs do what their names say, as a worker calls them, and the crew works without being asked."""

import asyncio

from keystead.jobs import Crew, JobBook
from keystead.messaging.links import jobs
from keystead.messaging.links.keys import LINK, TO_PERSIST

from .room import Room, on_sqlite

pytestmark = on_sqlite


def book(room: Room) -> JobBook:
    made = JobBook()
    jobs.register(made, room.links, room.valkey, room.database, room.clock)
    return made


async def test_callbacks_go_through_all_codes_and_bear_being_repeated(wide_room: Room) -> None:
    room = wide_room
    kept, dropped = [await room.link() for _ in range(2)], [await room.link() for _ in range(2)]
    run = book(room).jobs
    for _ in range(2):
        await run["touch.persist_links"](codes=["gone", "not:a code", *(link.code for link in kept)])
        await run["touch.abandon_links"](codes=["gone", "not:a code", *(link.code for link in dropped)])
    assert {code for code, _ in await TO_PERSIST.due.range(room.valkey)} == {link.code for link in kept}
    assert [await LINK.at(link.code).exists(room.valkey) for link in (*kept, *dropped)] == [True, True, False, False]
    assert await room.counted("persist_queue_failed", "abandon_failed") == {
        "persist_queue_failed": {"unknown:dropped": 2, "home:duplicated": 2}, "abandon_failed": {"dne": 4},
    }


async def test_every_recurring_job_is_in_the_book_and_runs(wide_room: Room) -> None:
    room = wide_room
    await room.touch("tch_1")
    link = await room.link()
    await room.links.persist(link.code)
    room.clock.advance(1800)
    run = book(room).jobs
    for each in jobs.recurring():
        await run[each.name]()
    assert await room.stored_links() == [link.code]


async def test_a_crew_stores_links_all_the_time(wide_room: Room) -> None:
    room = wide_room
    await room.touch("tch_1")
    links = [await room.link() for _ in range(5)]
    for link in links:
        await room.links.persist(link.code)
    room.clock.advance(1800)
    stop = asyncio.Event()
    works = [*jobs.crew(room.valkey, room.database, room.clock), *jobs.crew(room.valkey, room.database, room.clock)]
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(Crew(*works).work(stop))
        while len(await room.stored_links()) < 5 or await TO_PERSIST.workers_key.at().size(room.valkey) == 0:
            await asyncio.sleep(0.05)
        stop.set()
    assert await room.stored_links() == sorted(link.code for link in links)
    assert (await room.counted("persisted"))["persisted"] == {"home": 5}
