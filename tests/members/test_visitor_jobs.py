"""Queues are written down by jobs; whatever dies, each entry counts once."""

import pytest
from sqlalchemy import func, select

from keystead.engine import connect
from keystead.errors import Unavailable
from keystead.jobs import StopReason
from keystead.members.jobs import CLICKS_JOB, LINKS_JOB, recurring
from keystead.members.keys import CLICK_RUNS, CLICKS, LINK_RUNS, LINKS
from keystead.members.models import VisitorClick, VisitorLink
from keystead.members.tables import VISITOR_UTMS
from keystead.members.visitor_jobs import ClickJob, LinkJob

from ..jobs.batch_room import Died, at_call, each_call
from .room import NOON, TODAY, Room, on_sqlite

DAY = 86400.0


async def written(room: Room) -> int:
    async with room.database.reading() as sql:
        return await sql.scalar(select(func.count()).select_from(VISITOR_UTMS)) or 0


@on_sqlite
async def test_queues_are_worked_off_and_the_runs_are_kept(wide_room: Room) -> None:
    room = wide_room
    device, sub = await room.device(), await room.person("user_x", NOON + DAY)
    clicks = [VisitorClick(device, f"s{number}", NOON + number) for number in range(150)]
    await CLICKS.push(room.valkey, *clicks, clicks[0], VisitorClick("v_nobody", "A", NOON))
    await LINKS.push(room.valkey, VisitorLink(device, sub, NOON + 2 * DAY), VisitorLink(device, sub, NOON + 3 * DAY))
    for name in (LINKS_JOB, CLICKS_JOB):
        await room.book.jobs[name]()
    await room.settle()
    run = await CLICK_RUNS.at().get(room.valkey)
    assert run is not None
    assert (run.attempted, run.inserted, run.repeated, run.lost, run.stop_reason) == (
        152, 150, 1, 1, StopReason.LIST_EXHAUSTED)
    links = await LINK_RUNS.at().get(room.valkey)
    assert links is not None and (links.inserted, links.updated, links.lost) == (1, 1, 0)
    found = await room.conversions([TODAY])
    assert sum(amount for (_, _, name), amount in found.items() if name == "visits") == await written(room) == 150
    assert sum(amount for (_, _, name), amount in found.items() if name == "last_click_signups") == 1
    assert sum(amount for (_, _, name), amount in found.items() if name == "any_click_signups") == 150


async def test_an_entry_that_is_no_campaign_is_a_dead_letter_and_stops_no_other(room: Room) -> None:
    device = await room.device()
    names = ["A", " ", "B", "x" * 300]
    await CLICKS.push(room.valkey, *(VisitorClick(device, name, NOON + n) for n, name in enumerate(names)))
    await room.valkey.rpush(CLICKS.queue.name(room.valkey.layout), b"nonsense")
    run = await ClickJob(room.valkey, room.clock, room.attribution).run()
    assert run is not None and (run.done, run.dead, await written(room)) == (2, 3, 2)
    letters = await CLICKS.dead_letters(room.valkey)
    assert {letter.error.split(" ")[0] for letter in letters} == {"a", "utm_source", "does"}


async def test_what_the_database_cannot_take_now_stays_in_the_queue(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, sub = await room.device(), await room.person("user_x", NOON)
    await LINKS.push(room.valkey, VisitorLink(device, sub, NOON))

    async def away(entries: object) -> None:
        room.clock.advance(60)
        raise Unavailable("the database is away")

    monkeypatch.setattr(room.attribution, "record_links", away)
    run = await LinkJob(room.valkey, room.clock, room.attribution).run()
    assert run is not None and run.stop_reason is StopReason.TIME_EXHAUSTED
    monkeypatch.undo()
    assert await LINKS.length(room.valkey) == 1
    run = await LinkJob(room.valkey, room.clock, room.attribution).run()
    assert run is not None and run.done == 1


async def test_each_click_counts_once_wherever_the_process_dies(room: Room, valkey_server) -> None:
    device, rounds = await room.device(), 0
    async for number, after in each_call():
        clicks = [VisitorClick(device, "A", NOON + 10 * rounds + place) for place in range(3)]
        rounds += 1
        await CLICKS.push(room.valkey, *clicks)
        mortal = await connect(valkey_server.url)
        doomed = Room(mortal, room.database)

        async def dies() -> None:
            raise Died

        calls = at_call(mortal, number, dies, after=after)
        try:
            await ClickJob(mortal, room.clock, doomed.attribution).run()
        except (Died, BaseExceptionGroup):
            pass
        finally:
            await mortal.aclose()
        # The lock of a dead process is not waited for here: that is the lock's own affair.
        await room.valkey.delete(ClickJob.lock.key.at().name(room.valkey.layout))
        run = await ClickJob(room.valkey, room.clock, room.attribution).run()
        assert run is not None and run.dead == 0
        await room.settle(times=2)
        assert await written(room) == 3 * rounds, f"died at call {number}, after={after}"
        assert await room.conversions([TODAY]) == {(TODAY, "utm_source=A", "visits"): 3 * rounds}
        if len(calls) < number:
            break
    assert rounds > 6


def test_links_come_before_clicks_every_five_minutes() -> None:
    links, clicks = recurring()
    assert (links.name, clicks.name) == (LINKS_JOB, CLICKS_JOB)
    at = links.when.next_after(NOON)
    assert clicks.when.next_after(at) == at + 5 and links.when.next_after(at) == at + 300
