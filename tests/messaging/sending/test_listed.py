"""Whether an address is on a list: one question for many, and a short memory."""

import asyncio

import pytest

from keystead.errors import Unavailable
from keystead.messaging.sending.listed import BELIEVED_SECONDS, Listed
from keystead.testing.clock import MovableClock


class Table:
    """Stands for the table: what is asked for, and how often."""

    def __init__(self, *listed: str) -> None:
        self.listed, self.asked, self.is_away = set(listed), [], False
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, addresses: set[str]) -> set[str]:
        self.asked.append(sorted(addresses))
        found = self.listed & addresses
        await self.gate.wait()
        if self.is_away:
            raise Unavailable("the database is away")
        return found


def made(*listed: str) -> tuple[Listed, Table, MovableClock]:
    table, clock = Table(*listed), MovableClock(now=1000.0)
    return Listed(table, clock, folded=str.lower), table, clock


async def asking(table: Table, times: int = 1) -> None:
    while len(table.asked) < times:
        await asyncio.sleep(0)


async def test_questions_of_one_moment_share_a_query() -> None:
    listed, table, _ = made("b")
    assert await asyncio.gather(*map(listed.has, "aBcAb")) == [False, True, False, False, True]
    assert table.asked == [["a", "b", "c"]]


async def test_a_free_address_is_believed_for_a_minute_and_a_listed_one_is_asked_for_each_time() -> None:
    listed, table, clock = made("b")
    for _ in range(2):
        assert not await listed.has("a") and await listed.has("b")
    assert table.asked == [["a"], ["b"], ["b"]]
    table.listed = {"a"}
    assert not await listed.has("a") and not await listed.has("b")
    clock.advance(BELIEVED_SECONDS)
    assert await listed.has("a") and not await listed.has("b")
    table.listed.add("b")
    listed.forget("B")
    assert await listed.has("b")


async def test_what_is_expected_is_asked_for_at_once() -> None:
    listed, table, _ = made("b")
    assert not await listed.has("a")
    await listed.expect("aBcd")
    assert [await listed.has(letter) for letter in "abcd"] == [False, True, False, False]
    assert table.asked == [["a"], ["b", "c", "d"], ["b"]]
    table.is_away = True
    await listed.expect("e")  # whoever asks for it hears that nobody can say
    with pytest.raises(Unavailable):
        await listed.has("e")


async def test_nobody_waits_for_the_questions_of_those_who_come_later() -> None:
    """The one who asked first used to ask for all who came meanwhile, as long as somebody came."""
    listed, table, _ = made()
    table.gate.clear()
    first = asyncio.ensure_future(listed.has("a"))
    await asking(table)
    table.gate.set()
    asked = 0

    async def come() -> None:
        nonlocal asked
        while asked < 200:
            asked += 1
            await listed.has(f"x{asked}")

    others = [asyncio.ensure_future(come()) for _ in range(3)]
    assert not await first
    assert asked < 100
    await asyncio.gather(*others)


async def test_what_is_listed_while_it_is_asked_for_is_not_believed_free() -> None:
    listed, table, _ = made()
    table.gate.clear()
    first = asyncio.ensure_future(listed.has("a"))
    await asking(table)
    table.listed.add("a")
    listed.forget("a")
    table.gate.set()
    assert not await first, "it was not listed when it was asked for"
    assert await listed.has("a")


async def test_a_failure_reaches_everybody_who_asked_and_the_next_one_asks_again() -> None:
    listed, table, _ = made("a")
    table.is_away = True
    found = await asyncio.gather(*map(listed.has, "abc"), return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable] * 3
    table.is_away = False
    assert await listed.has("a")


@pytest.mark.parametrize("when", ["before it asks", "while it asks"])
async def test_whoever_is_cancelled_leaves_nobody_waiting(when: str) -> None:
    listed, table, _ = made("b")
    table.gate.clear()
    first, second = (asyncio.ensure_future(listed.has(each)) for each in "ab")
    await asyncio.sleep(0)
    if when == "while it asks":
        await asking(table)
    first.cancel()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(second, 20)
    table.gate.set()
    assert await listed.has("b")
