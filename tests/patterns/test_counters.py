"""Totals and counts by month."""

import random
from collections import Counter as Multiset
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Registry
from keystead.patterns.counters import Counted, Counter, MonthlyCounter
from tests.patterns.crash import Died, crash_points

ZONE = ZoneInfo("America/Los_Angeles")
SHOP = Keyspace("shop", tag="shop")
CLICKS = Counter(SHOP, "stats:clicks", purpose="clicks")
USERS = MonthlyCounter(SHOP, "stats:users", zone="America/Los_Angeles", purpose="people who joined")
DECEMBER = 635  # 2022-12


def instant(*when: int) -> float:
    return datetime(*when, tzinfo=ZONE).timestamp()  # type: ignore[arg-type]


async def test_a_total_grows(server: Valkey) -> None:
    assert await CLICKS.read(server) == 0
    assert [await CLICKS.increment(server), await CLICKS.increment(server, 4)] == [1, 5]
    assert await CLICKS.read(server) == 5
    with pytest.raises(DeclarationError):
        await CLICKS.increment(server, 0)


async def test_total_and_month_are_counted_in_one_step_under_the_documented_keys(server: Valkey) -> None:
    names = {"stats:users:count", "stats:users:monthly:{unix_month}:count", "stats:users:monthly:earliest"}
    assert names <= {declaration.pattern for declaration in Registry([SHOP])}
    assert (CLICKS.name, USERS.name) == ("clicks", "users")
    assert await USERS.increment(server, at=instant(2022, 12, 31, 23, 59)) == Counted(1, 1)
    assert await USERS.increment(server, 2, at=instant(2023, 1, 1, 0, 0)) == Counted(3, 2)
    assert await USERS.increment(server, at=instant(2022, 11, 3)) == Counted(4, 1), "backdated"
    assert await USERS.earliest(server) == DECEMBER - 1
    assert await USERS.read(server, DECEMBER) == Counted(4, 1)


async def test_total_and_month_stay_in_step_when_one_of_them_holds_something_else(valkey: Valkey) -> None:
    at = instant(2022, 12, 5)
    await USERS.increment(valkey, 3, at=at)
    for key in (USERS.total_key.at(), USERS.month_key.at(DECEMBER)):
        name = key.name(valkey.layout)
        for spoil in (("SET", name, "many"), ("SET", name, str(2**63 - 1)), ("LPUSH", name, "x")):
            await valkey.delete(name)
            await valkey.call(spoil)
            with pytest.raises(ErrorReply):
                await USERS.increment(valkey, at=at)
        await valkey.delete(name)
        await valkey.set(name, 3)
    assert await USERS.read(valkey, DECEMBER) == Counted(3, 3)


async def test_months_that_are_over_are_dropped_and_the_total_stays(server: Valkey) -> None:
    for month in range(1, 6):
        await USERS.increment(server, at=instant(2022, month, 15))
    assert await USERS.drop_before(server, DECEMBER - 8)
    assert not await USERS.drop_before(server, DECEMBER - 8)
    assert await USERS.earliest(server) == DECEMBER - 8
    assert [(await USERS.read(server, DECEMBER - 11 + month)).month for month in range(5)] == [0, 0, 0, 1, 1]
    assert (await USERS.read(server, DECEMBER)).total == 5


async def test_a_drop_that_dies_leaves_nothing_before_earliest(server: Valkey) -> None:
    async for mortal in crash_points(server, 10):
        await server.flushdb()
        for month in range(1, 6):
            await USERS.increment(server, at=instant(2022, month, 15))
        with suppress(Died):
            await USERS.drop_before(mortal, DECEMBER - 8)  # type: ignore[arg-type]
        earliest = await USERS.earliest(server)
        assert earliest in (DECEMBER - 11, DECEMBER - 8)
        assert [(await USERS.read(server, month)).month for month in range(DECEMBER - 11, earliest)] == [0] * (
            earliest - DECEMBER + 11)
        if not mortal.dead:
            return


async def test_counts_follow_a_plain_model(server: Valkey) -> None:
    rng = random.Random(5)
    months: Multiset[int] = Multiset()
    total, dropped = 0, 0
    for _ in range(150):
        at = instant(2022, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23))
        month = USERS.month_of(at)
        if rng.random() < 0.1:
            if await USERS.drop_before(server, month):
                dropped += 1
                months = Multiset({kept: amount for kept, amount in months.items() if kept >= month})
            continue
        amount = rng.randint(1, 5)
        months[month] += amount
        total += amount
        assert await USERS.increment(server, amount, at=at) == Counted(total, months[month])
        earliest = await USERS.earliest(server)
        assert earliest is not None and earliest <= min(+months)
    assert dropped
