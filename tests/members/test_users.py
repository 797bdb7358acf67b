"""People are made once for each identity, and counted once whatever dies."""

import asyncio

import pytest
from sqlalchemy import delete, func, select

from keystead.engine import connect
from keystead.errors import Invalid, NotFound, ReplyLost
from keystead.members.tables import USER_IDENTITIES, USERS
from keystead.store import SqlOutbox
from keystead.store.tables import OUTBOX

from ..jobs.batch_room import Died, at_call, each_call
from .room import NOON, Room, on_sqlite

EVERY_PERIOD = (0, 1, 7, 30, 90)


@on_sqlite
async def test_a_person_is_made_at_the_first_log_in_and_found_at_the_next(wide_room: Room) -> None:
    room = wide_room
    ada = await room.users.ensure("google", "g-1", given_name="Ada", family_name="L", timezone="Europe/London")
    assert (ada.created, ada.given_name, ada.timezone, ada.created_at) == (True, "Ada", "Europe/London", NOON)
    room.clock.advance(60)
    again = await room.users.ensure("google", "g-1", given_name="Other", timezone="Asia/Tokyo")
    assert (again.created, again.sub, again.given_name) == (False, ada.sub, "Ada")
    assert (await room.users.ensure("apple", "g-1")).sub != ada.sub, "another provider's name for somebody"
    assert (await room.users.get(ada.sub)).family_name == "L"
    cohort = dict.fromkeys(EVERY_PERIOD, (0, 2))
    assert await room.counted() == (2, 2, 2, cohort), "counted before any job ran"
    await room.settle()
    assert await room.counted() == (2, 2, 2, cohort), "the jobs count nobody again"


async def test_of_many_at_once_one_makes_the_person(room: Room) -> None:
    found = await asyncio.gather(*(room.users.ensure("google", f"g-{n % 3}") for n in range(30)))
    assert len({member.sub for member in found}) == 3
    assert [member.created for member in found].count(True) == 3
    async with room.database.reading() as sql:
        assert await sql.scalar(select(func.count()).select_from(USER_IDENTITIES)) == 3
    await room.settle()
    assert (await room.counted())[0] == await room.rows() == 3


async def test_a_lost_answer_to_the_commit_makes_nobody_twice(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    create, lost = room.users._create, []

    async def commits_and_hears_nothing(*args: object) -> None:
        await create(*args)  # type: ignore[arg-type]
        lost.append(args)
        raise ReplyLost("the connection broke during a commit")

    monkeypatch.setattr(room.users, "_create", commits_and_hears_nothing)
    member = await room.users.ensure("google", "g-1")
    assert member.created and len(lost) == 1
    assert (await room.counted())[0] == await room.rows() == 1


async def test_what_cannot_be_stored_is_refused_before_anything_is_written(room: Room) -> None:
    for wrong, says in (
        ({"timezone": "America/Los_Angles"}, "there is no time zone 'America/Los_Angles'; did you mean America/Los_A"),
        ({"given_name": "x" * 256}, "given_name must be text of 0 to 255"), ({"family_name": "a\0b"}, "family_name"),
    ):
        with pytest.raises(Invalid, match=says):
            await room.users.ensure("google", "g-1", **wrong)
    with pytest.raises(Invalid, match="provider_sub must be text of 1"):
        await room.users.ensure("google", "")
    with pytest.raises(NotFound):
        await room.users.get("user_nobody")  # type: ignore[arg-type]
    assert await room.rows() == 0 and await room.valkey.dbsize() == 0


async def test_each_person_is_counted_once_wherever_the_process_dies(room: Room, valkey_server) -> None:
    """Every call from the commit on: the count, the job; each cut off before and after it was applied."""
    made = 0
    async for number, after in each_call():
        mortal = await connect(valkey_server.url)
        doomed = Room(mortal, room.database)

        async def dies() -> None:
            raise Died

        calls = at_call(mortal, number, dies, after=after)
        made += 1
        try:
            member = await doomed.users.ensure("google", f"g-{made}")
            await doomed.outbox.relay()
            await doomed.book.jobs["keystead.members.count_created"](sub=member.sub, created_at=member.created_at)
        except Died:
            pass
        finally:
            await mortal.aclose()
        await room.settle()
        total, month, today, cohort = await room.counted()
        assert (total, month, today) == (made, made, made), f"died at call {number}, after={after}"
        assert cohort == dict.fromkeys(EVERY_PERIOD, (0, made))
        assert await room.rows() == made
        if len(calls) < number:
            break
    assert made > 4


async def test_a_transaction_that_does_not_commit_counts_nobody(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*args: object, **kwargs: object) -> str:
        raise Died

    monkeypatch.setattr(SqlOutbox, "enqueue", fails)
    with pytest.raises(Died):
        await room.users.ensure("google", "g-1")
    monkeypatch.undo()
    await room.settle()
    assert await room.rows() == 0 and (await room.counted())[:3] == (0, 0, 0)


async def test_an_identity_goes_with_its_person(room: Room) -> None:
    member = await room.users.ensure("google", "g-1")
    async with room.database.transaction() as sql:
        await sql.execute(delete(USERS).where(USERS.c.sub == member.sub))
        assert await sql.scalar(select(func.count()).select_from(USER_IDENTITIES)) == 0
        assert await sql.scalar(select(func.count()).select_from(OUTBOX)) == 1
    assert await room.users.created_at(member.sub) is None
    assert (await room.users.ensure("google", "g-1")).created
