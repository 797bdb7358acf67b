"""The jobs of the room are in the book, run at their times, and take what channels tell them."""

import asyncio

from keystead.jobs import Crew, JobBook, RecurringList
from keystead.messaging.touches.jobs import crew, recurring, register

from .room import Room, on_sqlite

pytestmark = on_sqlite


async def test_the_book_holds_every_job_and_handler(room: Room):
    ends = ("success", "failure")
    handlers = {f"touch.{channel}_{end}_handler" for channel in ("sms", "push", "email") for end in ends}
    assert set(room.book.jobs) >= handlers | {"members.erased"}
    RecurringList(recurring()).check(room.book)
    spelled = {one.name: one.when.spelling() for one in recurring()}
    assert len(spelled) == 3, spelled


async def test_single_runs_do_the_whole_way(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await room.send("ada")
    for name in ("keystead.touches.send", "keystead.touches.log", "keystead.touches.detect_stale"):
        await room.book.jobs[name]()
    assert len(await room.texts()) == 1 and len(await room.events()) == 2


async def test_the_crew_does_the_whole_way_without_being_called(wide_room: Room):
    room = wide_room
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    works = crew(room.valkey, room.clock, room.planner, room.outlets, room.pending, room.log, workers=2)
    assert len(works) == 4
    stop = asyncio.Event()
    working = asyncio.create_task(Crew(*works).work(stop))
    await room.send("ada")
    async with asyncio.timeout(60):
        while len(await room.events()) < 2:
            await asyncio.sleep(0.05)
        stop.set()
        await working
    assert len(await room.texts()) == 1


async def test_other_rooms_may_answer_to_the_same_announcement(room: Room):
    book, heard = JobBook(), []

    async def hear(user_sub: str) -> None:
        heard.append(user_sub)

    book.listen("members.erased", hear)
    register(book, room.valkey, room.clock, room.planner, room.outlets, room.handlers, room.pending, room.log,
             room.erasure)
    await book.jobs["members.erased"](user_sub="ada")
    assert heard == ["ada"]
