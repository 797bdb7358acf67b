"""People while the processes that make them are killed without warning: each is counted once."""

import asyncio
import random

import pytest
from sqlalchemy import func, select

from keystead.members.stats import NEW_USERS, RETENTION, USERS
from keystead.members.tables import USER_IDENTITIES
from keystead.store import Database
from keystead.testing.server import LocalServer

from ..members.room import Room
from .programs import programs


@pytest.mark.slow
async def test_everybody_is_counted_once_whoever_is_killed(
    valkey, valkey_server: LocalServer, database: Database, database_url: str
) -> None:
    """Two processes race for the same identities; one after the other is killed at some moment."""
    rng, first = random.Random(7), 0
    async with programs("tests.faults.members_program") as start:
        for _ in range(2):
            racing = [await start(valkey_server.url, database_url, str(first)) for _ in range(2)]
            for program in racing:
                await program.hears("made", times=2, seconds=120)
            await asyncio.sleep(rng.uniform(0, 0.1))
            for program in racing:
                await program.kill()
            # The last line may be half a line.
            first = max(int(words[1]) for program in racing for words in program.words("made") if len(words) > 1)
    room = Room(valkey, database)
    await room.settle()
    async with database.reading() as sql:
        identities = await sql.scalar(select(func.count()).select_from(USER_IDENTITIES))
    made = await room.rows()
    assert made == identities >= 12
    first_day, first_month = await NEW_USERS.earliest(valkey), await USERS.earliest(valkey)
    assert first_day is not None and first_month is not None
    by_day = await NEW_USERS.read_range(valkey, first_day, first_day + 1)
    months = [await USERS.read(valkey, month) for month in (first_month, first_month + 1)]
    assert (months[0].total, sum(one.month for one in months), sum(by_day.values())) == (made, made, made)
    for day, number in by_day.items():
        assert await RETENTION.sizes(valkey, day) == dict.fromkeys(RETENTION.periods, (0, number))
